"""Lines of pages are below 120 characters, but for what cannot be folded."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("word " * 30, [1]),
        ("short\n    indented " + "word " * 30, [2]),
        ("```\n$ typed " + "word " * 30 + "\n```", [2]),
        ("```\nprinted " + "word " * 30 + "\n```\n" + "word " * 30, [4]),
        ("| cell | " + "word " * 30 + "|", []),
        ("https://example.com/" + "a" * 120, []),
        ("see https://example.com/" + "a" * 120 + " and more", [1]),
    ],
)
def test_what_is_too_long_is_noticed(text: str, lines: list[int]) -> None:
    assert list(too_long(text)) == lines
