"""Reads and writes affinity groups, in the words of the command's options, and placement rules as YAML."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, Struct
from ovirt_placement.model.files import yaml_file
from ovirt_placement.model.infrastructure import STEPS_PER_UNIT, fixed_point
from ovirt_service.decoding import check_unique
from ovirt_service.errors import UserError, placed
from ovirt_service.text import code_of

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

    #: Clusters whose groups it lists in full, besides those of its groups: a cluster that is to have none.
    clusters: tuple[str, ...] = ()
    groups: tuple[GroupEntry, ...] = ()


class RuleFile(yaml_file.Formatted, frozen=True):
    """All rules of one file, as they are named."""

    rules: tuple[PlacementRule, ...] = ()


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
    return yaml_file.load(path, "groups", _groups)


def _groups(content: bytes) -> GroupFile:
    file = yaml_file.decode(content, GroupFile)
    check_unique("groups", "name", file.groups)
    return replace(file, groups=tuple(_stored(at, group) for at, group in enumerate(file.groups)))


def _stored(at: int, group: GroupEntry) -> GroupEntry:
    with placed(f"groups[{at}].priority: "):
        priority = stored_priority(group.priority)
    with placed(f"groups[{at}].name: "):
        stored_text(group.name)
    with placed(f"groups[{at}].description: "):
        description = None if group.description is None else stored_text(group.description)
    return replace(group, priority=priority, description=description)


def load_rules(path: Path) -> tuple[PlacementRule, ...]:
    """Read the rules of a file.

    What is wrong with a rule itself is left to the rules. Raises `UserError` if the file cannot be read, has
    another form, or two rules have one name; it gives the place.
    """
    return yaml_file.load(path, "rules", _rules)


def _rules(content: bytes) -> tuple[PlacementRule, ...]:
    file = yaml_file.decode(content, RuleFile)
    check_unique("rules", "name", file.rules)
    return file.rules


def described(kind: str, entries: Iterable[GroupEntry | PlacementRule]) -> dict[str, object]:
    """The content of a file of `groups` or `rules`."""
    return {"format": yaml_file.FORMAT, kind: [msgspec.to_builtins(one) for one in entries]}
