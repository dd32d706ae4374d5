r"""Quotations, `\Q...\E`: Java writes them out before it reads an expression."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_SPECIAL = re.compile(r"[^0-9A-Za-z\x80-\U0010ffff]")


def unquoted(regex: str) -> str:
    """The expression with an escape for each character of a quotation that needs one."""
    return _PIECE.sub(_written_out, regex)


def _written_out(piece: re.Match[str]) -> str:
    quoted: str | None = piece[1]
    if quoted is None:
        return piece[0]
    if quoted[:1].isascii() and quoted[:1].isdigit():
        # By itself it could go on with the number of a group before it.
        return rf"\x3{quoted[0]}" + _escaped(quoted[1:])
    return _escaped(quoted)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
