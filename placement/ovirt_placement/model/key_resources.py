"""What placement keys are set on: the objects of each level, by id and by the name that people write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ovirt_placement.model import Cluster, DataCenter, Host, Network, PlacementKey, Snapshot, Vm, VnicProfile
from ovirt_placement.model.names import choices
from ovirt_placement.model.placement_keys import CLUSTER, NODE, SERVER, STICKY, check_level, level_of
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

_Named = Cluster | DataCenter | Host | Network | Vm | VnicProfile

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


class Resource(NamedTuple):
    id: str
    #: The id, where the snapshot knows no name.
    name: str


def resources_of(level: str, snapshot: Snapshot) -> tuple[Resource, ...]:
    """List what stands on a level, each once; of templates, profiles and the like, those that VMs use."""
    return tuple(dict.fromkeys(_resources(level, snapshot)))


def resource_name(level: str, resource: str, snapshot: Snapshot) -> str:
    """The name of an object, or its id if it has none."""
    return next((known.name for known in resources_of(level, snapshot) if known.id == resource), resource)


def resource_word(level: str, resource: str, snapshot: Snapshot) -> str:
    """What `find_resource` takes for this object and no other: its name, or its id if that is shared."""
    known = resources_of(level, snapshot)
    name = resource_name(level, resource, snapshot)
    alike = [one for one in known if name in one]
    return name if len(alike) == 1 else resource


def find_resource(level: str, word: str, snapshot: Snapshot) -> str:
    """The id of the object of a level that a word means: its id, or its name if no other has it too.

    Of templates, quotas and the like, the id of one that no VM uses yet will do, too. Raises `UserError`
    with the nearest right word.
    """
    check_level(level)
    known = resources_of(level, snapshot)
    if any(word == one.id for one in known):
        return word
    found = [one.id for one in known if one.name == word]
    if len(found) > 1:
        things = [snapshot.vm_by_id.get(one) or snapshot.host_by_id.get(one) or one for one in found]
        raise UserError(f'{level} "{word}" is ambiguous: say {choices(things, snapshot)}')
    if found:
        return found[0]
    if level not in _COMPLETE and _UUID.fullmatch(word):
        return word
    hint = nearest(word, [one.name for one in known])
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
    known = any((key.level, key.resource) == (level, named[0]) for key in keys)
    return Place(level, named[0] if known else find_resource(level, named[0], snapshot))


def clusters_of(level: str, resource: str, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The clusters whose placements a key there may change; all, where VMs of several may share it."""
    known = snapshot.cluster_by_id
    held: Mapping[str, Mapping[str, Vm | Host]]
    held = {SERVER: snapshot.vm_by_id, NODE: snapshot.host_by_id}
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
    there = {level: {one.id for one in resources_of(level, snapshot)} for level in levels}
    return tuple(key for key in keys if there.get(key.level) and key.resource not in there[key.level])


def _resources(level: str, snapshot: Snapshot) -> Iterator[Resource]:
    named: dict[str, tuple[_Named, ...]] = {
        CLUSTER: snapshot.clusters,
        NODE: snapshot.hosts,
        SERVER: snapshot.vms,
        STICKY: snapshot.vms,
        "vdc_offer": snapshot.data_centers,
        "vdc": snapshot.data_centers,
        "network_offer": snapshot.networks,
        "network": snapshot.networks,
        "nic_offer": snapshot.vnic_profiles,
    }
    if level in named:
        yield from (Resource(one.id, one.name) for one in named[level])
        return
    for vm in snapshot.vms:
        yield from _used_by(vm, level)


def _used_by(vm: Vm, level: str) -> Iterator[Resource]:
    """What a VM refers to on a level; an interface is named as in `web/nic1`."""
    if level == "nic":
        yield from (Resource(nic.id, f"{vm.name}/{nic.name}") for nic in vm.nics)
        return
    used = {
        "billing_entity": (vm.quota,),
        "customer_offer": (vm.owner,),
        "customer": (vm.owner,),
        "image_offer": (vm.template,),
        "image": (vm.template,),
        "server_offer": (vm.cpu_profile, vm.instance_type),
        "disk_offer": tuple(disk.profile for disk in vm.disks),
        "disk": tuple(disk.id for disk in vm.disks),
    }
    yield from (Resource(one, one) for one in used[level] if one is not None)
