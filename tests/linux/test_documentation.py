# SPDX-License-Identifier: GPL-2.0
"""The features' Documentation and the sysctl's say the same of vm.write_intent."""

import pytest

from firsttouch.catalog.releases import release_names
from firsttouch.files import LINUX


@pytest.mark.parametrize("release", release_names())
def test_the_sysctl_names_the_page_that_explains_it(release: str) -> None:
    page = "Documentation/arch/arm64/write-intent-faults.rst"
    hook = (LINUX / "hooks" / release / "write-intent-faults.patch").read_text()
    _, _, sysctl = hook.partition("+++ b/Documentation/admin-guide/sysctl/vm.rst")
    assert page in sysctl.partition("\ndiff ")[0]
    assert "vm.write_intent" in (LINUX / page).read_text()
