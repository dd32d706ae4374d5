"""Every link of a page leads to a file that is there, and to a heading that stands in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.paths import CHECKOUT

PAGES = [*sorted(CHECKOUT.glob("*.md")), *sorted((CHECKOUT / "docs").rglob("*.md"))]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(text)}


def leads_nowhere(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in anchors(target)


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("", page.read_text()))


def test_every_link_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in links_of(page) if "://" not in link]
    assert len(links) > len(PAGES) > 30
    assert [(page.name, link) for page, link in links if leads_nowhere(page, link)] == []
