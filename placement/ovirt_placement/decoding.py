"""Turns the decoder's complaints into a path and a sentence that the writer of a file understands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$?(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`", re.DOTALL)
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "Path": "the path of a file",
}


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "..."?` for the known name that is most like the given one, else nothing."""
    match = difflib.get_close_matches(name, known, n=1)
    return f'; did you mean "{match[0]}"?' if match else ""


def complaint(error: msgspec.ValidationError, root: type[msgspec.Struct]) -> str:
    """Say where and what is wrong, as in `vms[3].host: expected text or null, not a whole number`.

    `root` is the type that was decoded; it is asked for the right name of an unknown key.
    """
    match = _MESSAGE.fullmatch(str(error))
    what = match["what"] if match else str(error)
    path = ((match["path"] if match else None) or "").lstrip(".")
    if unknown := _UNKNOWN.fullmatch(what):
        key = unknown["key"]
        return f"{_joined(path, key)}: unknown key{nearest(key, _keys_at(root, path))}"
    if missing := _MISSING.fullmatch(what):
        return f"{_joined(path, missing['key'])}: is missing"
    return f"{path or 'the top level'}: {_in_words(what)}"


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _in_words(what: str) -> str:
    match = re.fullmatch(r"Expected `(.*?)`(.*?)(?:, got `(.*?)`)?", what)
    if match is None:
        return what[:1].lower() + what[1:]
    wanted = " or ".join(_TYPES.get(word, word) for word in match[1].split(" | "))
    found = f", not {_TYPES.get(match[3], match[3])}" if match[3] else ""
    return f"expected {wanted}{match[2]}{found}"


def _keys_at(root: type[msgspec.Struct], path: str) -> list[str]:
    """List the keys that an object at this path may have."""
    here: Any = root
    for name in re.findall(r"[A-Za-z_]+", path):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(here)}
        here = _struct_within(fields.get(name))
        if here is None:
            return []
    return [field.encode_name for field in msgspec.structs.fields(here)]


def _struct_within(annotation: Any) -> Any:
    """Find the record type in an annotation such as `tuple[Vm, ...]` or `SchedulingPolicy | None`."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next((found for part in get_args(annotation) if (found := _struct_within(part))), None)
