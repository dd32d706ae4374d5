"""Checks `properties_validation` as the engine does: what it refuses there makes it drop the whole unit.

Source: the engine's CustomPropertiesUtils: `key=regex;key2=regex2` with an optional last semicolon.
"""

from __future__ import annotations

import re

from ..worker.text import escaped
from . import java_regex

_KEY = re.compile(r"[a-z_A-Z0-9]+")
_WHOLE = re.compile(r"[a-z_A-Z0-9]+=[^;]*(;[a-z_A-Z0-9]+=[^;]*)*;?")


def problems(properties: str) -> list[str]:
    """What the engine would refuse, as sentences; none when all is well. No properties at all are well."""
    if not properties:
        return []
    found = []
    seen: set[str] = set()
    for part in properties.removesuffix(";").split(";"):
        key, equals, regex = part.partition("=")
        if not equals:
            found.append(
                f"properties_validation: {part!r} is not of the form key=regex (no regex may hold a ';')"
            )
        elif not _KEY.fullmatch(key):
            found.append(
                f"properties_validation: the key {key!r} may hold letters, digits and _ only, and no spaces"
            )
        elif key in seen:
            found.append(f"properties_validation: the key {key!r} stands there twice")
        elif refused := java_regex.problem(regex):
            found.append(f"properties_validation: Java does not compile {regex!r} of {key}: {refused}")
        seen.add(key)
    if escaped(properties) != properties:
        found.append(f"properties_validation: {properties!r} holds characters that cannot be shown")
    if not found and not _WHOLE.fullmatch(properties):
        found.append(f"properties_validation: {properties!r} is not of the form key=regex;key2=regex2")
    return found
