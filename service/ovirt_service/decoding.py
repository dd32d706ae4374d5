"""Turns the decoder's complaints into a path and a sentence that the writer of a file understands."""

import difflib
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import msgspec

from ovirt_service.errors import UserError

_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `(?:key` in `)?\$?(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`", re.DOTALL)
_INVALID = re.compile(r"Invalid enum value '(?P<word>.*)'", re.DOTALL)
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
#: A name that ends with a number.
_NUMBERED = re.compile(r"(|.*\D)(\d{1,18})", re.DOTALL)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "..."?` for the known names that are most like the given one, else nothing."""
    return did_you_mean(alike(name, known))


def did_you_mean(names: Iterable[str]) -> str:
    """The same for names that are found already."""
    found = " or ".join(f'"{one}"' for one in names)
    return f"; did you mean {found}?" if found else ""


def alike(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that were probably meant, the best first: of no more than two kinds of slips.

    First in other letters, small or capital, or with a key struck twice. Of names that differ in their number
    alone it is the one with the nearest number: `web7` is more like `web6` than like `web70`.
    """
    names = dict.fromkeys(known)
    folded = name.casefold()
    other_case = [one for one in names if one.casefold() == folded][:1]
    pairs = (at for at in range(1, len(name)) if name[at] == name[at - 1])
    once = [one for at in pairs if (one := name[:at] + name[at + 1 :]) in names][:1]
    found = dict.fromkeys([*(other_case or once), *_numbered(name, names)])
    return tuple(other_case) or tuple(found) or tuple(difflib.get_close_matches(name, names, n=1))


def _numbered(name: str, known: Iterable[str]) -> list[str]:
    """The name that differs in its last number alone, and least there."""
    given = _NUMBERED.fullmatch(name)
    if given is None:
        return []
    parts = [(found, one) for one in known if (found := _NUMBERED.fullmatch(one))]
    same = [(abs(int(one[2]) - int(given[2])), name) for one, name in parts if one[1] == given[1]]
    return [min(same)[1]] if same else []


def complaint(error: msgspec.ValidationError, root: type[msgspec.Struct]) -> str:
    """Say where and what is wrong, as in `vms[3].host: expected text or null, not a whole number`.

    `root` is the type that was decoded; it is asked for the right name of an unknown key.
    """
    match = _MESSAGE.fullmatch(str(error))
    assert match is not None  # noqa: S101 - all of any text may be the first part
    what, path = match["what"], (match["path"] or "").lstrip(".")
    if unknown := _UNKNOWN.fullmatch(what):
        key, known = unknown["key"], list(_fields(_annotation_at(root, path)))
        hint = nearest(key, known) or (f"; known are {', '.join(known)}" if known else "")
        return f"{_joined(path, key)}: unknown key{hint}"
    if missing := _MISSING.fullmatch(what):
        return f"{_joined(path, missing['key'])}: is missing"
    if invalid := _INVALID.fullmatch(what):
        words = _words_at(root, path)
        hint = f"; one of {', '.join(words)}{nearest(invalid['word'], words)}" if words else ""
        return f'{path}: cannot be "{invalid["word"]}"{hint}'
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


def _words_at(root: type[msgspec.Struct], path: str) -> list[str]:
    """List the words that a value at this path may be."""
    annotation = _annotation_at(root, path)
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    words = _within(annotation, Enum)
    return [str(word.value) for word in words] if words else []


def _annotation_at(root: type[msgspec.Struct], path: str) -> Any:
    """Find the annotation of what stands at a path such as `vms[3].disks[0]`."""
    here: Any = root
    for name in re.findall(r"[A-Za-z_]+", path):
        here = _fields(here).get(name)
    return here


def _fields(annotation: Any) -> dict[str, Any]:
    """The keys of an object, with their annotations; none of what is no object."""
    record = _within(annotation, msgspec.Struct)
    return {field.encode_name: field.type for field in msgspec.structs.fields(record)} if record else {}


def _within(annotation: Any, kind: type) -> Any:
    """Find the type of this kind in an annotation such as `tuple[Vm, ...]` or `SchedulingPolicy | None`."""
    if isinstance(annotation, type) and issubclass(annotation, kind):
        return annotation
    return next((found for part in get_args(annotation) if (found := _within(part, kind))), None)


def check_unique(name: str, field: str, entries: Iterable[object]) -> None:
    """Raise `UserError` if an entry of the list of this name has an empty id or name, or that of another."""
    article = "an" if field == "id" else "a"
    first: dict[str, int] = {}
    for at, entry in enumerate(entries):
        known: str = getattr(entry, field)
        if not known.strip():
            raise UserError(f"{name}[{at}].{field}: {article} {field} cannot be empty")
        if (before := first.setdefault(known, at)) != at:
            raise UserError(f'{name}[{at}].{field}: "{known}" is the {field} of {name}[{before}] already')
