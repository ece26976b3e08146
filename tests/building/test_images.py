# SPDX-License-Identifier: GPL-2.0
"""Images of the real kernels, as the store has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.store import store_root
from firsttouch.catalog.releases import release_names


@pytest.mark.kernel
@pytest.mark.parametrize("release", release_names())
def test_an_image_does_not_depend_on_where_the_store_is(
    images: Callable[[str, bool], Path], release: str
) -> None:
    image = images(release, True).read_bytes()
    assert f"Linux version {release}.".encode() in image
    assert str(store_root()).encode() not in image
