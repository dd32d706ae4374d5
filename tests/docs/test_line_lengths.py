"""Lines of pages are below 120 characters, but for what cannot be folded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs.generated import PAGES as GENERATED
from tests.paths import CHECKOUT

LONGEST = 119
PAGES = [
    page
    for page in (
        CHECKOUT / "README.md",
        CHECKOUT / "CONTRIBUTING.md",
        *sorted((CHECKOUT / "docs").rglob("*.md")),
    )
    if page not in GENERATED
]
#: A row of a table, or a link alone, which may stand in brackets or in a list.
_WHOLE = re.compile(r"\s*(\||[-*<(]?\s*(\[[^\]]*\]\()?https?://\S+$)")
#: What somebody types can be folded by a backslash.
_TYPED = re.compile(r"\s*[$#] ")


def too_long(text: str) -> Iterator[int]:
    """Lines that could be folded: what commands print stands between fences, and is left as it is."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif len(line) > LONGEST and not _WHOLE.match(line) and (not fenced or _TYPED.match(line)):
            yield number


def test_generated_pages_are_known() -> None:
    assert CHECKOUT / "docs" / "commands.md" in GENERATED
    assert len(PAGES) > 30


def test_lines_of_pages_are_short() -> None:
    assert [(page.name, line) for page in PAGES for line in too_long(page.read_text())] == []
