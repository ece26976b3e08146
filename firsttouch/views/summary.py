# SPDX-License-Identifier: GPL-2.0
"""Datasets for programs: summary.json."""

from __future__ import annotations

from firsttouch.analysis.dataset import Dataset, Distribution, Row
from firsttouch.tables import Json

SCHEMA = 2


def summary(dataset: Dataset) -> dict[str, Json]:
    """Return the contents of summary.json.

    The same results give the same document: it has nothing that varies between
    hosts or runs.
    """
    return {
        "schema": SCHEMA,
        # From `firsttouch lab --quick`: smaller sizes and fewer cells.
        "quick": dataset.quick,
        "rows": [_row(row) for row in dataset.rows],
        "unavailable": [
            {**gap.case.document(), "metric": gap.metric, "reasons": dict(gap.reasons)}
            for gap in dataset.gaps
        ],
    }


def _row(row: Row) -> dict[str, Json]:
    published = row.published
    return {
        **row.case.document(),
        "metric": row.metric,
        "unit": row.unit,
        "arms": dict(row.arms),
        "change_percent": row.change_percent,
        # The two arms of the change: the base, and the arm that is compared with it.
        "change_of": list(row.case.pair() or ()),
        "published": (
            {"figure": published.figure, "source": published.source} if published else None
        ),
        "verdict": row.verdict,
        # Number of arrangements of kernel and program in memory behind the figure.
        "layouts": len(row.layouts) or 1,
        **({"distribution": _distribution(row)} if row.layouts else {}),
    }


def _distribution(row: Row) -> dict[str, Json]:
    return {
        "change_percent": _spread(row.changes_over()),
        "arms": {arm: _spread(row.values_over(arm)) for arm in row.arms},
        # In how many layouts is the verdict that of the row, and of how many?
        "holds_in": list(row.holds_in() or ()),
    }


def _spread(values: Distribution | None) -> Json:
    if values is None:
        return None
    return dict(zip(("minimum", "median", "maximum"), values.spread, strict=True))
