"""Reads and writes files of administrators, as YAML or JSON: affinity groups, placement rules, and keys."""

import contextlib
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from ovirt_placement.model import PlacementKey, PlacementRule, Snapshot, Struct
from ovirt_placement.model.infrastructure import STEPS_PER_UNIT, fixed_point, is_priority
from ovirt_placement.model.names import find_resource, resource_word
from ovirt_placement.model.record import CLASSES, CLUSTER, NODE, SYSTEM, check_level, check_text
from ovirt_service import files
from ovirt_service.decoding import check_unique, complaint, nearest
from ovirt_service.errors import UserError, placed
from ovirt_service.text import code_of

#: A hundred thousand keys are 10 MiB.
_MOST_MIB = 64
FORMAT = 1


class Formatted(Struct, frozen=True):
    """The content of a file, which says in which format it is."""

    format: int = FORMAT


File = TypeVar("File", bound=Formatted)


def _load(path: Path, form: type[File], entries: str) -> File:
    """Read a file of these entries, no two of one name. Raises `UserError`, with the file and the place."""
    content = files.read_named(path, entries, _MOST_MIB)
    with placed(f"{path}: "):
        file = _decoded(content, form)
        check_unique(entries, "name", getattr(file, entries))
        return file


def _decoded(content: bytes, form: type[File]) -> File:
    """Decode a file's content. Raises `UserError`, with the place, if it has another form or format."""
    try:
        file = msgspec.convert(_parsed(content), form, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, form)) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"not YAML: {_reported(error)}") from None
    except RecursionError:
        raise UserError("not YAML: nested too deeply") from None
    if file.format != FORMAT:
        raise UserError(f"format: this release reads format {FORMAT}, not {file.format}")
    return file


def encode(content: object) -> str:
    """Encode what is read here."""
    # In ASCII: some characters that YAML takes for line ends are not escaped otherwise.
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110)


def _parsed(content: bytes) -> object:
    """JSON is read as JSON: YAML allows nearly all of it, but takes a few characters otherwise."""
    if content.lstrip().startswith(b"{"):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(content)
    return _Loader(content).get_single_data()


def _reported(error: Exception) -> str:
    """The line and column where the YAML is invalid, and why."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


class _Loader(yaml.SafeLoader):
    """Refuses what the plain loader passes over in silence: a word that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        words = [self.construct_object(key, deep=True) for key, _ in node.value]
        for word, (key, _) in zip(words, node.value, strict=True):
            if words.count(word) > 1:
                raise yaml.constructor.ConstructorError(None, None, f'"{word}" stands twice', key.start_mark)
        return super().construct_mapping(node, deep)


# -- Affinity groups, in the words of the command's options, and placement rules.
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


class GroupFile(Formatted, frozen=True, kw_only=True, omit_defaults=True):
    """All groups of one file."""

    #: Clusters whose groups it lists in full, besides those of its groups: a cluster that is to have none.
    clusters: tuple[str, ...] = ()
    groups: tuple[GroupEntry, ...] = ()


class RuleFile(Formatted, frozen=True):
    """All rules of one file, as they are named."""

    rules: tuple[PlacementRule, ...] = ()


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
    if not is_priority(priority):
        raise UserError("a priority is a number, such as 1 or 2.5")
    return fixed_point(priority) / STEPS_PER_UNIT


def stored_text(text: str) -> str:
    """A name or description as the engine keeps it: without blanks around it, its lines ended by LF.

    Raises `UserError` for a character that XML cannot hold.
    """
    if found := _NOT_IN_XML.search(text):
        raise UserError(f"the engine's API cannot hold the character {code_of(found[0])}")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def load_groups(path: Path) -> GroupFile:
    """Read such a file.

    Whether there are such clusters and members is left to the reader. Raises `UserError` if the file cannot
    be read, has another form, or two groups have one name; it gives the place.
    """
    file = _load(path, GroupFile, "groups")
    with placed(f"{path}: "):
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
    return _load(path, RuleFile, "rules").rules


def described(kind: str, entries: Iterable[GroupEntry | PlacementRule]) -> dict[str, object]:
    """The content of a file of `groups` or `rules`."""
    return {"format": FORMAT, kind: [msgspec.to_builtins(one) for one in entries]}


# -- Placement keys, with the names that people know in place of ids.
#: Above this not every whole number has a float of its own, and digits would only look exact.
_EXACT = 2**53


class NodeKey(Struct, frozen=True):
    """A key of the hosts of a cluster: what each of them has for a value."""

    cluster: str
    name: str
    values: dict[str, float | str]
    weight: float | None = None
    sticky: bool = False


class Key(Struct, frozen=True, kw_only=True):
    """A key as in a state file; the class may be left to who imports it."""

    level: str
    resource: str
    key_class: str | None = msgspec.field(name="class", default=None)
    name: str
    value: float | str
    weight: float | None = None
    sticky: bool = False


class KeyFile(Formatted, frozen=True):
    """All keys of one file."""

    node_keys: tuple[NodeKey, ...] = ()
    keys: tuple[Key, ...] = ()


def load_keys(path: Path, snapshot: Snapshot, key_class: str = SYSTEM) -> tuple[PlacementKey, ...]:
    """Read the keys of a file, found in the snapshot; `key_class` is that of keys which do not say.

    What is wrong with a key itself is left to the rules. Raises `UserError` if the file cannot be read,
    has another form, or names what the snapshot does not hold; the message names the place.
    """
    content = files.read_named(path, "keys", _MOST_MIB)
    with placed(f"{path}: "):
        return decode_keys(content, snapshot, key_class)


def decode_keys(content: bytes, snapshot: Snapshot, key_class: str = SYSTEM) -> tuple[PlacementKey, ...]:
    """Decode a file's content; raises `UserError` as `load_keys` does, without the name of the file."""
    file = _decoded(content, KeyFile)
    found: dict[tuple[str, str, str, str], str] = {}
    keys = []
    for path, key in (*_node_keys(file, snapshot), *_keys(file, snapshot, key_class)):
        before = found.setdefault((key.level, key.resource, key.key_class, key.name), path)
        if before != path:
            raise UserError(f'{path}: "{key.name}" is set there by {before} already')
        with placed(f"{path}."):
            check_text(key.name, key.value)
        keys.append(key)
    return tuple(keys)


def described_keys(keys: Iterable[PlacementKey], snapshot: Snapshot) -> dict[str, object]:
    """The content of a file from which `decode_keys` reads the same again, in any order."""
    of_hosts: dict[tuple[str, str, float | None, bool], dict[str, Any]] = defaultdict(dict)
    others = []
    for key in keys:
        host = snapshot.host_by_id.get(key.resource) if key.level == NODE else None
        word = resource_word(key.level, key.resource, snapshot)
        if host is None or key.key_class != SYSTEM:
            known = {"level": key.level, "resource": word, "class": key.key_class, "name": key.name}
            others.append({**known, "value": _number(key.value), **_flags(key.weight, key.sticky)})
        else:
            of_hosts[host.cluster, key.name, key.weight, key.sticky][word] = _number(key.value)
    node_keys = [
        {"cluster": resource_word(CLUSTER, cluster, snapshot), "name": name}
        | _flags(weight, sticky)
        | {"values": values}
        for (cluster, name, weight, sticky), values in of_hosts.items()
    ]
    return {"format": FORMAT, "node_keys": node_keys, "keys": others}


def _node_keys(file: KeyFile, snapshot: Snapshot) -> Iterator[tuple[str, PlacementKey]]:
    for at, entry in enumerate(file.node_keys):
        path = f"node_keys[{at}]"
        cluster = _resource_id(f"{path}.cluster", CLUSTER, entry.cluster, snapshot)
        for word, value in entry.values.items():
            host = _resource_id(f"{path}.values", NODE, word, snapshot)
            if snapshot.host_by_id[host].cluster != cluster:
                raise UserError(f'{path}.values: host "{word}" is not of cluster "{entry.cluster}"')
            key = PlacementKey(NODE, host, SYSTEM, entry.name, value, entry.weight, entry.sticky)
            yield f"{path}.values.{word}", key


def _keys(file: KeyFile, snapshot: Snapshot, key_class: str) -> Iterator[tuple[str, PlacementKey]]:
    for at, entry in enumerate(file.keys):
        path = f"keys[{at}]"
        if entry.key_class not in {None, *CLASSES}:
            hint = nearest(entry.key_class or "", CLASSES)
            raise UserError(f'{path}.class: "{entry.key_class}" is not one of {", ".join(CLASSES)}{hint}')
        check_level(entry.level, f"{path}.level: ")
        fields = msgspec.structs.asdict(entry)
        fields["key_class"] = entry.key_class or key_class
        fields["resource"] = _resource_id(f"{path}.resource", entry.level, entry.resource, snapshot)
        yield path, PlacementKey(**fields)


def _resource_id(path: str, level: str, word: str, snapshot: Snapshot) -> str:
    with placed(f"{path}: "):
        return find_resource(level, word, snapshot)


def _flags(weight: float | None, sticky: bool) -> dict[str, Any]:
    said: dict[str, Any] = {} if weight is None else {"weight": _number(weight)}
    return {**said, "sticky": True} if sticky else said


def _number(value: float | str) -> float | int | str:
    """Whole numbers as people write them."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if whole else value
