"""Texts compared as the engine has its database do it: the LIKE pattern of a text, and what it matches.

Source: the engine's `SqlInjectionChecker.enforceEscapeCharacters` and `SyntaxChecker.escapeUnderScore`.
"""

from __future__ import annotations

import re

#: The parts of a pattern: any text, any letter, and a letter that stands for itself, marked or not.
_PARTS = re.compile(r"(?P<any>%)|(?P<one>_)|\\?(?P<letter>.)", re.DOTALL)


def escaped(value: str) -> str:
    """Mark `%` and backslashes as letters, but for those that a backslash marks already."""
    found, before = [], ""
    for position, letter in enumerate(value):
        behind = value[position + 1 : position + 2] if position else ""
        marked = before == "\\" or (letter == "\\" and behind in ("%", "\\"))
        found.append(f"\\{letter}" if letter in "%\\" and not marked else letter)
        before = letter
    return "".join(found)


def like(value: str, relation: str) -> str:
    """Give the pattern of a searched text, `*` for any text; in an `!=` the engine leaves `_` a wildcard."""
    pattern = escaped(value).replace("*", "%")
    return pattern.replace("_", "\\_") if relation == "=" else pattern


def compiled(pattern: str, case_sensitive: bool) -> re.Pattern[str]:
    """Compile a LIKE pattern for `fullmatch`."""
    flags = re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE
    return re.compile("".join(_expression(part) for part in _PARTS.finditer(pattern)), flags)


def _expression(part: re.Match[str]) -> str:
    if part["any"]:
        return ".*"
    return "." if part["one"] else re.escape(part["letter"])
