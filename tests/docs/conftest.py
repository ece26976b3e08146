# SPDX-License-Identifier: GPL-2.0
"""The drawing of the documents' figures."""

from __future__ import annotations

import pytest

from docs.evidence.draw.command import traced_blocks
from docs.evidence.draw.declared import load_evidence
from docs.evidence.draw.documents import Drawing

EVIDENCE = load_evidence()
TRACED = traced_blocks(EVIDENCE)
# It reads each set once; a set with a result that cannot be read is an error.
DRAWING = Drawing(EVIDENCE, TRACED)


@pytest.fixture
def drawing() -> Drawing:
    return DRAWING
