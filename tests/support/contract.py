# SPDX-License-Identifier: GPL-2.0
"""The contract of this checkout's ftbench, for tests of what is checked against it."""

import functools

from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import Contract, parse_contract
from firsttouch.progress import Reporter


@functools.cache
def real_contract() -> Contract:
    """Return what ftbench of this checkout can do."""
    return parse_contract(ftbench_list(Reporter()))
