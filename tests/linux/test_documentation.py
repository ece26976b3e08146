# SPDX-License-Identifier: GPL-2.0
"""The features' Documentation and the sysctl's say the same of vm.write_intent."""

import pytest

from firsttouch.catalog.releases import release_names
from firsttouch.files import LINUX
from tests.linux.test_size import changed_by


@pytest.mark.parametrize("release", release_names())
def test_the_sysctl_names_the_page_that_explains_it(release: str) -> None:
    page = "Documentation/arch/arm64/write-intent-faults.rst"
    added = changed_by((LINUX / "hooks" / release / "write-intent-faults.patch").read_text(), "+")
    assert page in added["Documentation/admin-guide/sysctl/vm.rst"]
    assert "vm.write_intent" in (LINUX / page).read_text()
