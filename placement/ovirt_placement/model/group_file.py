"""Reads and writes affinity groups as YAML, in the words that the command's options have."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from ovirt_placement.model import Struct, yaml_file
from ovirt_service.errors import UserError

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
        if not math.isfinite(group.priority):
            raise UserError(f"groups[{at}].priority: a priority is a number, such as 1 or 2.5")
    return file


def dumps(groups: Iterable[GroupEntry]) -> str:
    """Encode groups so that `loads` gives the same again."""
    return yaml_file.encode(described(groups))


def described(groups: Iterable[GroupEntry]) -> dict[str, object]:
    """The content of such a file, which may be written as JSON just as well."""
    return {"format": FORMAT, "groups": [msgspec.to_builtins(group) for group in groups]}
