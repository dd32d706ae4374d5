"""Names for ids, as administrators know them, and ids for what they name. And counts in words."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple, Protocol, TypeVar

from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.record import CLUSTER, NODE, SERVER, STICKY, Record, check_level, level_of
from ovirt_placement.model.snapshot import grouped
from ovirt_service.decoding import alike, did_you_mean, nearest
from ovirt_service.errors import UserError


class Named(Record, frozen=True):
    """Something of the engine's, as it stands in answers."""

    id: str
    name: str


class NamedGroup(Named, frozen=True):
    """An affinity group, or a legacy label that acts as one."""

    is_label: bool = False
    #: Whether it is a placement rule of ours, which the engine does not know.
    is_rule: bool = False

    @property
    def title(self) -> str:
        """Its name with the word for what it is."""
        if self.is_rule:
            return f"placement rule {self.name}"
        return f"affinity {'label' if self.is_label else 'group'} {self.name}"


def choices(found: Iterable[object], snapshot: Snapshot | None) -> str:
    """Things of one name by their ids, each with its cluster; with its host where they share a cluster."""
    several = list(found)
    several_clusters = len({getattr(one, "cluster", None) for one in several}) > 1
    said = []
    for one in several:
        where = ""
        if snapshot is not None and several_clusters and hasattr(one, "cluster"):
            where = f" (cluster {named_cluster(one.cluster, snapshot).name})"
        elif snapshot is not None and hasattr(one, "host"):
            where = " (down)" if one.host is None else f" (host {host_name(one.host, snapshot)})"
        said.append(f"{getattr(one, 'id', one)}{where}")
    return " or ".join(said)


def vm_name(vm_id: str, snapshot: Snapshot) -> str:
    known = snapshot.vm_by_id.get(vm_id)
    return known.name if known else vm_id


def host_name(host_id: str, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host_id)
    return known.name if known else host_id


def group_name(group_id: str, snapshot: Snapshot) -> str:
    return named_group(group_id, snapshot).title


def group_names(group_ids: Iterable[str], snapshot: Snapshot) -> str:
    return " and ".join(group_name(group, snapshot) for group in group_ids)


def named_vm(vm_id: str, snapshot: Snapshot) -> Named:
    return Named(vm_id, vm_name(vm_id, snapshot))


def named_host(host_id: str, snapshot: Snapshot) -> Named:
    return Named(host_id, host_name(host_id, snapshot))


def named_cluster(cluster_id: str, snapshot: Snapshot) -> Named:
    known = snapshot.cluster_by_id.get(cluster_id)
    return Named(cluster_id, known.name if known else cluster_id)


def named_group(group_id: str, snapshot: Snapshot) -> NamedGroup:
    """An affinity group, a legacy label that acts as one, or a placement rule."""
    rule = snapshot.rule_by_id.get(group_id)
    if rule is not None:
        return NamedGroup(group_id, rule.name, is_rule=True)
    label = snapshot.label_by_id.get(group_id)
    known = label or snapshot.group_by_id.get(group_id)
    return NamedGroup(group_id, known.name if known else group_id, is_label=label is not None)


def group_ids(snapshot: Snapshot) -> tuple[str, ...]:
    """Affinity groups, legacy labels that act as some, and placement rules: what a step can repair."""
    labels = (label.id for label in snapshot.affinity_labels if label.implicit)
    return (*snapshot.group_by_id, *labels, *snapshot.rule_by_id)


def named_vms(ids: Iterable[str], snapshot: Snapshot) -> tuple[Named, ...]:
    return tuple(named_vm(one, snapshot) for one in ids)


def named_hosts(ids: Iterable[str], snapshot: Snapshot) -> tuple[Named, ...]:
    return tuple(named_host(one, snapshot) for one in ids)


def named_groups(ids: Iterable[str], snapshot: Snapshot) -> tuple[NamedGroup, ...]:
    return tuple(named_group(one, snapshot) for one in ids)


#: Types of fields that say what an id is of. Any function may stand there that makes the field's value of
#: the one with ids, and the snapshot.
NamedVm = Annotated[Named, named_vm]
NamedHost = Annotated[Named, named_host]
NamedCluster = Annotated[Named, named_cluster]
GroupOrRule = Annotated[NamedGroup, named_group]


def names_of(named: Iterable[Named]) -> str:
    """The names of these, with commas between them."""
    return ", ".join(one.name for one in named)


def counted(number: int, noun: str) -> str:
    """Give `1 VM`, `2 VMs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def be(number: int) -> str:
    """Give the verb that goes with it: `is` of one, else `are`."""
    return "is" if number == 1 else "are"


# -- What a word of the configuration, of a rule or of a key names: an id, a name, or names by a pattern.
#: Stands for any characters, or none, in a name; no name of the engine's has one.
WILDCARD = "*"


class Identified(Protocol):
    """What has an id, and a name that people know."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


Entity = TypeVar("Entity", bound=Identified)
_Value = TypeVar("_Value")


class UnmatchedName(Record, frozen=True, omit_defaults=False):
    """A name that stands somewhere and matches nothing in the engine: what it is to do is not done."""

    #: Such as `[enforcer] exclude_vms`, or a placement rule.
    where: str
    #: What it should name: VM, host, cluster ...
    kind: str
    word: str
    #: Names that are most like it, the best first.
    nearest: tuple[str, ...] = ()
    #: Whether a placement rule has it.
    in_rule: bool = False

    @property
    def what(self) -> str:
        """The fault without its place."""
        several = ":" in self.word or WILDCARD in self.word
        what = f"{self.word} names no {self.kind}" if several else f"there is no {self.kind} {self.word}"
        return f"{what}{did_you_mean(self.nearest)}"

    @property
    def sentence(self) -> str:
        return f"{self.where}: {self.what}"


def unmatched(
    where: str, kind: str, word: str, known: Iterable[str], *, in_rule: bool = False
) -> UnmatchedName:
    """A name that matches none of the known ones."""
    return UnmatchedName(where, kind, word, alike(word, known), in_rule)


def fits(word: str, name: str) -> bool:
    """Whether a word is this name, or a pattern of it."""
    return word == name or (WILDCARD in word and _pattern(word).fullmatch(name) is not None)


def begins(prefix: str, name: str) -> bool:
    """Whether a name begins with a prefix, which may be a pattern."""
    return name.startswith(prefix) or (WILDCARD in prefix and _pattern(prefix).match(name) is not None)


def named(words: Collection[str], identity: str, name: str) -> bool:
    """Whether a list of ids, names and patterns has this one."""
    return identity in words or name in words or any(fits(word, name) for word in words if WILDCARD in word)


def called(word: str, entities: Iterable[Entity]) -> list[Entity]:
    """Those of this id, or else of this name, or else of names that fit the pattern."""
    every = list(entities)
    exact = [one for one in every if one.id == word] or [one for one in every if one.name == word]
    return exact or [one for one in every if WILDCARD in word and fits(word, one.name)]


def value_of(values: Mapping[str, _Value], identity: str, name: str) -> _Value | None:
    """What a table says of one: by its id, by its name, or by the longest pattern; `*` is of all others."""
    fitting = (word for word in values if WILDCARD in word and fits(word, name))
    word = next((one for one in (identity, name) if one in values), None)
    found = max(fitting, key=lambda one: (len(one), one), default=None) if word is None else word
    return None if found is None else values[found]


@lru_cache(maxsize=1024)
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, word.split(WILDCARD))), re.DOTALL)


# -- What placement keys are set on.
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

#: A snapshot holds all of these. Of other levels it holds what something refers to.
_COMPLETE = {CLUSTER: "cluster", NODE: "host", SERVER: "VM"}

#: What to say of a level on which people give names as they like.
_INSTEAD = dict.fromkeys(
    ("customer", "customer_offer"), "; give the id of a user or group, or tag a VM pk-customer-NAME first"
)

#: Levels of which a snapshot holds everything that the engine has, and those of which one with devices does.
LISTED = (CLUSTER, NODE, SERVER, "vdc_offer", "vdc")
LISTED_WITH_DEVICES = (*LISTED, "disk", "network_offer", "network", "nic_offer", "nic")


class Place(NamedTuple):
    """A level, and the id of an object there or all of them."""

    level: str
    resource: str | None


class _Resources(NamedTuple):
    """What stands on one level."""

    by_id: Mapping[str, Named]
    #: The ids of those that have a name.
    by_name: Mapping[str, tuple[str, ...]]

    def called(self, word: str) -> list[str]:
        """The ids of those that have this id or name."""
        return list(dict.fromkeys((*([word] if word in self.by_id else ()), *self.by_name.get(word, ()))))


def _resources(level: str, snapshot: Snapshot) -> _Resources:
    """What stands on a level, listed once: there may be as many keys as there are VMs."""
    if level not in snapshot.key_resources:
        by_id = {one.id: one for one in _listed(level, snapshot)}
        by_name = grouped((one.name, one.id) for one in by_id.values())
        snapshot.key_resources[level] = _Resources(by_id, by_name)
    found: _Resources = snapshot.key_resources[level]
    return found


def _listed(level: str, snapshot: Snapshot) -> Iterator[Named]:
    """All that the snapshot knows; of templates, profiles and the like, those that VMs use.

    The name is the id, where it knows none.
    """
    if (field := _FIELDS.get(level)) is not None:
        yield from (Named(one.id, one.name) for one in getattr(snapshot, field))
    elif level == "nic":
        yield from (Named(nic.id, f"{vm.name}/{nic.name}") for vm in snapshot.vms for nic in vm.nics)
    else:
        used = (one for vm in snapshot.vms for one in _USED[level](vm))
        yield from (Named(one, one) for one in used if one is not None)


#: Where a snapshot has what stands on a level; and of other levels what a VM uses there.
_FIELDS = {
    CLUSTER: "clusters", NODE: "hosts", SERVER: "vms", STICKY: "vms", "vdc_offer": "data_centers",
    "vdc": "data_centers", "network_offer": "networks", "network": "networks", "nic_offer": "vnic_profiles",
}  # fmt: skip
_USED: Mapping[str, Callable[[Vm], Iterable[str | None]]] = {
    "billing_entity": lambda vm: (vm.quota,),
    **dict.fromkeys(("customer_offer", "customer"), lambda vm: (vm.owner,)),
    **dict.fromkeys(("image_offer", "image"), lambda vm: (vm.template,)),
    "server_offer": lambda vm: (vm.cpu_profile, vm.instance_type),
    "disk_offer": lambda vm: (disk.profile for disk in vm.disks),
    "disk": lambda vm: (disk.id for disk in vm.disks),
}


def resource_name(level: str, resource: str, snapshot: Snapshot) -> str:
    """The name of an object, or its id if it has none."""
    known = _resources(level, snapshot).by_id.get(resource)
    return known.name if known else resource


def resource_word(level: str, resource: str, snapshot: Snapshot) -> str:
    """What `find_resource` takes for this object and no other: its name, or its id if that is shared."""
    name = resource_name(level, resource, snapshot)
    return name if len(_resources(level, snapshot).called(name)) == 1 else resource


def find_resource(level: str, word: str, snapshot: Snapshot) -> str:
    """The id of the object of a level that a word means: its id, or its name if no other has it too.

    Of templates, quotas and the like, the id of one that no VM uses yet will do, too, and what keys are set
    on: the last VM of a customer may be gone. Raises `UserError` with the nearest right word.
    """
    check_level(level)
    known = _resources(level, snapshot)
    if word in known.by_id:
        return word
    found = known.by_name.get(word, ())
    if len(found) > 1:
        entities = (snapshot.vm_by_id.get(one) or snapshot.host_by_id.get(one) or one for one in found)
        raise UserError(f'{level} "{word}" is ambiguous: say {choices(entities, snapshot)}')
    if found:
        return found[0]
    if level not in _COMPLETE and (_UUID.fullmatch(word) or _has_keys(level, word, snapshot.placement_keys)):
        return word
    hint = nearest(word, known.by_name)
    reported = "" if hint or level in _COMPLETE else _INSTEAD.get(level, "; give its id")
    raise UserError(f'no {_COMPLETE.get(level, level)} "{word}"{hint}{reported}')


def find_place(words: Sequence[str], keys: Iterable[PlacementKey], snapshot: Snapshot) -> Place:
    """What a level, and perhaps the name or id of what stands there, mean.

    What keys are set on may be gone from the engine: its id will do. Raises `UserError` as `find_resource`.
    """
    level, *named = level_of(words[0]), *words[1:]
    if len(named) > 1:
        raise UserError(f"a level and one object were expected, not {' '.join(words)}")
    if not named:
        check_level(level)
        return Place(level, None)
    known = _has_keys(level, named[0], keys)
    return Place(level, named[0] if known else find_resource(level, named[0], snapshot))


def _has_keys(level: str, resource: str, keys: Iterable[PlacementKey]) -> bool:
    return any((key.level, key.resource) == (level, resource) for key in keys)


def clusters_of(level: str, resource: str, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The clusters whose placements a key there may change; all, where VMs of several may share it."""
    known = snapshot.cluster_by_id
    held: dict[str, Mapping[str, Vm | Host]] = {SERVER: snapshot.vm_by_id, NODE: snapshot.host_by_id}
    if level == CLUSTER and resource in known:
        return (known[resource],)
    if (one := held.get(level, {}).get(resource)) is not None:
        return (known[one.cluster],)
    if level in {"vdc", "vdc_offer"}:
        return tuple(one for one in snapshot.clusters if one.data_center == resource) or snapshot.clusters
    return snapshot.clusters


def gone_keys(
    keys: Iterable[PlacementKey], snapshot: Snapshot, levels: Iterable[str]
) -> tuple[PlacementKey, ...]:
    """Keys on these levels whose object the snapshot does not hold.

    Of a level of which it holds nothing at all it says nothing.
    """
    there = {level: _resources(level, snapshot).by_id for level in levels}
    return tuple(key for key in keys if there.get(key.level) and key.resource not in there[key.level])
