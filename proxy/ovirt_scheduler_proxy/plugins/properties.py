"""Checks `properties_validation` as the engine does: what it refuses there makes it drop the whole unit.

Source: the engine's CustomPropertiesUtils: `key=regex;key2=regex2` with an optional last semicolon.
"""

from __future__ import annotations

import re

from ..worker.text import escaped, one_line
from . import java_regex

#: Of what is wrong, this much is reported.
_LONGEST = 200

_KEY = re.compile(r"[a-z_A-Z0-9]+")
_WHOLE = re.compile(r"[a-z_A-Z0-9]+=[^;]*(;[a-z_A-Z0-9]+=[^;]*)*;?")


def problems(properties: str) -> list[str]:
    """What the engine would refuse, as sentences; none if there are no errors, or no properties."""
    return [f"properties_validation: {one}" for one in _problems(properties)] if properties else []


def _problems(properties: str) -> list[str]:
    found = []
    seen: set[str] = set()
    for part in properties.removesuffix(";").split(";"):
        key, equals, regex = part.partition("=")
        if not equals:
            found.append(f"{_shown(part)} is not of the form key=regex (no regex may hold a ';')")
        elif not _KEY.fullmatch(key):
            found.append(f"the key {_shown(key)} may hold letters, digits and _ only, and no spaces")
        elif key in seen:
            found.append(f"the key {_shown(key)} stands there twice")
        elif refused := java_regex.problem(regex):
            found.append(f"Java does not compile {_shown(regex)} of {one_line(key, 100)}: {refused}")
        seen.add(key)
    if escaped(properties) != properties:
        found.append(f"{_shown(properties)} holds characters that cannot be shown")
    if not found and not _WHOLE.fullmatch(properties):
        found.append(f"{_shown(properties)} is not of the form key=regex;key2=regex2")
    return found


def unchecked(properties: str) -> list[str]:
    """Expressions that are not judged whole, as sentences."""
    pairs = (part.partition("=") for part in properties.split(";"))
    return [
        f"properties_validation: {_shown(regex)} of {one_line(key, 100)}: not checked whether Java compiles"
        f" it, from {_shown(rest)} on"
        for key, _, regex in pairs
        if (rest := java_regex.unchecked(regex))
    ]


def _shown(text: str) -> str:
    return one_line(repr(text), _LONGEST)
