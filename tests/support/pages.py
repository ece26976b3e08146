# SPDX-License-Identifier: GPL-2.0
"""The words and the sections of a page of the report."""

import re


def text_of(page: str) -> str:
    """Return a page's words, without elements and style."""
    body = re.sub(r"<(style|svg)\b.*?</\1>|<wbr>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def section_of(page: str, anchor: str) -> str:
    section = re.search(rf'<section id="{anchor}">.*?</section>', page, flags=re.DOTALL)
    assert section, f"no section {anchor}"
    return section[0]
