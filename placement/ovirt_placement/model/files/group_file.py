"""Reads and writes affinity groups as YAML, in the words that the command's options have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import Struct
from ovirt_placement.model.affinity import STEPS_PER_UNIT, fixed_point
from ovirt_placement.model.files import yaml_file
from ovirt_service.errors import UserError
from ovirt_service.text import code_of

FORMAT = 1

Polarity = Literal["positive", "negative", "disabled"]


class GroupEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An affinity group as it is to be; names or ids stand for cluster and members."""

    name: str
    cluster: str
    #: None leaves what is there.
    description: str | None = None
    priority: float = 1.0
    vms_rule: Polarity = "disabled"
    vms_enforcing: bool = False
    hosts_rule: Polarity = "disabled"
    hosts_enforcing: bool = False
    vms: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    vm_labels: tuple[str, ...] = ()
    host_labels: tuple[str, ...] = ()


class GroupFile(yaml_file.Formatted, frozen=True, kw_only=True, omit_defaults=True):
    """All groups of one file."""

    format: int = FORMAT
    #: Clusters whose groups it lists in full, besides those of its groups: a cluster that is to have none.
    clusters: tuple[str, ...] = ()
    groups: tuple[GroupEntry, ...] = ()


#: Fewer steps of a priority than this fit into the engine's number.
_MOST_STEPS = 2**63
#: What no XML document can hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def stored_priority(priority: float) -> float:
    """A priority that the engine keeps as it is: rounded to 1e-7 until that changes nothing any more.

    Numbers above some 2e8 are not always the same when they come back. Raises `UserError` for what is no
    number, or too large.
    """
    stored = _rounded(priority)
    while stored != priority:
        priority, stored = stored, _rounded(stored)
    return stored


def _rounded(priority: float) -> float:
    """Raises `UserError` as `stored_priority`."""
    if not math.isfinite(priority) or abs(priority * STEPS_PER_UNIT) >= _MOST_STEPS:
        raise UserError("a priority is a number, such as 1 or 2.5")
    return fixed_point(priority) / STEPS_PER_UNIT


def stored_text(text: str) -> str:
    """A name or description as the engine keeps it: without blanks around it, its lines ended by LF.

    Raises `UserError` for a character that XML cannot hold.
    """
    if found := _NOT_IN_XML.search(text):
        raise UserError(f"the engine's API cannot hold the character {code_of(found[0])}")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def load(path: Path) -> GroupFile:
    """Read such a file.

    Whether there are such clusters and members is left to the reader. Raises `UserError` if the file cannot
    be read, has another form, or two groups have one name; it gives the place.
    """
    return yaml_file.load(path, "groups", loads)


def loads(content: bytes) -> GroupFile:
    """Decode a file's content; raises `UserError` as `load` does, without the name of the file."""
    file = yaml_file.decode(content, GroupFile, FORMAT)
    first: dict[str, int] = {}
    for at, group in enumerate(file.groups):
        if (before := first.setdefault(group.name, at)) != at:
            raise UserError(f'groups[{at}].name: "{group.name}" is the name of groups[{before}] already')
    return replace(file, groups=tuple(_stored(at, group) for at, group in enumerate(file.groups)))


def _stored(at: int, group: GroupEntry) -> GroupEntry:
    description = group.description
    part = "priority"
    try:
        priority = stored_priority(group.priority)
        part = "name"
        stored_text(group.name)
        part = "description"
        description = None if description is None else stored_text(description)
    except UserError as error:
        raise UserError(f"groups[{at}].{part}: {error}") from None
    return replace(group, priority=priority, description=description)


def dumps(groups: Iterable[GroupEntry]) -> str:
    """Encode groups so that `loads` gives the same again."""
    return yaml_file.encode(described(groups))


def described(groups: Iterable[GroupEntry]) -> dict[str, object]:
    """The content of such a file, which may be written as JSON just as well."""
    return {"format": FORMAT, "groups": [msgspec.to_builtins(group) for group in groups]}
