"""The commands of ours that pages show, line by line, as somebody would type them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.parsers import PARSERS
from tests.paths import CHECKOUT

#: The reference shows how commands are built, not what to type.
PAGES = [
    CHECKOUT / "README.md",
    *(page for page in sorted((CHECKOUT / "docs").rglob("*.md")) if page.name != "commands.md"),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|(?<=\n)\n((?:    [^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(rf"\s*(?:[$#] )?(?:\.venv/bin/)?((?:{'|'.join(PARSERS)})\s.*)")


def commands(page: Path) -> Iterator[str]:
    """Each command, with what follows a backslash, without a comment and what its output goes into."""
    for found in BLOCK.finditer(page.read_text()):
        lines = (found[2] or found[3]).replace("\\\n", " ").splitlines()
        if found[1] not in (None, "", "console", "sh", "text"):
            continue
        if found[3] and not _COMMAND.fullmatch(lines[0]):
            continue  # of a list, what goes on after a paragraph is set in, too
        for line in lines:
            match = _COMMAND.fullmatch(line)
            if match:
                yield re.split(r"\s(?:#(?= )|[|>&;])", match[1], maxsplit=1)[0].strip()
