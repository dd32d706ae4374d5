"""What stands in comments above the fields of a class in the code: what each of them means."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

_FIELD = re.compile(r"    (\w+): ")
_COMMENT = "    #: "


def comments(record: type, *, shared: bool = False) -> Mapping[str, str]:
    """The comment of each field that has one, also those of the classes that it extends.

    If `shared`, fields that follow each other with nothing between them have the comment above the first.
    """
    found: dict[str, str] = {}
    for one in reversed(record.__mro__):
        if one.__module__.startswith("ovirt_"):
            found.update(_own(inspect.getsource(one).splitlines(), shared))
    return found


def _own(lines: list[str], shared: bool) -> Iterator[tuple[str, str]]:
    said: list[str] = []
    complete = False
    for line in lines:
        if line.startswith(_COMMENT):
            said = [] if complete else said
            said.append(line.removeprefix(_COMMENT))
            complete = False
        elif match := _FIELD.match(line):
            if said and (shared or not complete):
                yield match[1], " ".join(said)
            complete = True
        elif not line.startswith("     "):
            said = []
