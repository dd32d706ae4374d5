"""The recipes' page in parts: its sections, and what stands in their blocks."""

from __future__ import annotations

import re

from tests.paths import CHECKOUT

FOLDER = CHECKOUT / "docs" / "recipes"
PAGE = CHECKOUT / "docs" / "recipes.md"


def section(title: str) -> str:
    """What stands below a heading."""
    (found,) = (part for part in PAGE.read_text().split("\n## ") if part.startswith(f"{title}\n"))
    return found


def blocks(title: str, language: str = "") -> list[str]:
    """The blocks of a section in this language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", section(title), re.DOTALL | re.MULTILINE)
    return [text for named, text in fenced if named == language]


def shown(title: str) -> list[tuple[str, str]]:
    """The commands that a section shows, each with what it prints, in order."""
    found = []
    for block in blocks(title):
        for part in ("\n" + block).split("\n$ ")[1:]:
            whole = part.replace("\\\n", "")
            command, _, printed = whole.partition("\n")
            found.append((" ".join(command.split()), printed.strip()))
    return found
