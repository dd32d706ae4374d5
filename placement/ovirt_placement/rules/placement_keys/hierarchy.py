"""The levels above a VM with the keys that are set there, which keys count, and what is wrong with them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import ClassVar

from ovirt_placement.lookups import once_for
from ovirt_placement.model import Cluster, PlacementKey, Snapshot, StickyCopy, Vm
from ovirt_placement.model.record import CLUSTER, CUSTOMER, NODE, SERVER, STICKY, SYSTEM, Record, strength
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.placement_keys.keys import ZERO, Code, ignored_because, is_ratio, number, validate


class CompiledKey(Record, frozen=True):
    """A key that takes part, where it came from, and the weaker keys of its name that it hides."""

    name: str
    value: Fraction
    weight: Fraction
    source: PlacementKey
    hidden: tuple[PlacementKey, ...] = ()


class MistakenKey(Record, frozen=True):
    """A key and what is wrong with it."""

    key: PlacementKey
    codes: tuple[Code, ...]

    @property
    def sentence(self) -> str:
        return "; ".join(code.text for code in self.codes)


class CompiledKeys(Record, frozen=True):
    """The keys of one VM by name; the customer's are those of its billing entity and its own together."""

    system: Mapping[str, CompiledKey] = {}
    customer: Mapping[str, CompiledKey] = {}
    #: Keys that take no part and hide nothing.
    ignored: tuple[MistakenKey, ...] = ()


def compile_keys(keys: Iterable[PlacementKey]) -> CompiledKeys:
    """Compile the keys of all resources that a VM depends on, given in any order.

    On one resource a customer's key wins over the billing entity's, and a later key over an earlier
    one. Keys of other levels, such as a host's, have no effect.
    """
    ordered = sorted(
        (level, key.key_class == CUSTOMER, position, key)
        for position, key in enumerate(keys)
        if (level := strength(key.level)) is not None
    )
    system: dict[str, CompiledKey] = {}
    customer: dict[str, CompiledKey] = {}
    ignored = []
    for _, _, _, key in ordered:
        if codes := ignored_because(key):
            ignored.append(MistakenKey(key, codes))
        else:
            compiled = system if key.key_class == SYSTEM else customer
            weaker = compiled.get(key.name)
            hidden = (*weaker.hidden, weaker.source) if weaker else ()
            value, weight = number(key.value) or ZERO, number(key.weight) or ZERO
            compiled[key.name] = CompiledKey(key.name, value, weight, key, hidden)
    return CompiledKeys(system, customer, tuple(ignored))


NAME = "placement_keys"

_NUMBER = r"-?[0-9]+(\.[0-9]+)?"
_KEY = rf"[A-Za-z_][A-Za-z0-9_.-]{{0,49}}:{_NUMBER}:{_NUMBER}"

#: What the engine is to accept; free of the `;` and `=` that end and split a property there.
PATTERN = rf"{_KEY}(,{_KEY})*"

_WHOLE = re.compile(PATTERN)
_DIGITS = re.compile(r"(\d+)")


def is_readable(text: str) -> bool:
    """Whether a property has the form `NAME:VALUE:WEIGHT,...`; an empty one sets no keys."""
    return not text or _WHOLE.fullmatch(text) is not None


def property_keys(vm: Vm) -> tuple[PlacementKey, ...]:
    """The VM's own customer keys from its property; none if it cannot be read, which must stop no start."""
    text = vm.custom_properties.get(NAME, "")
    if not text or not is_readable(text):
        return ()
    written = (entry.split(":") for entry in text.split(","))
    return tuple(
        PlacementKey(
            level=SERVER, resource=vm.id, key_class=CUSTOMER, name=name, value=value, weight=float(weight)
        )
        for name, value, weight in written
    )


def resources(snapshot: Snapshot, vm: Vm) -> Iterator[tuple[str, str]]:
    """Levels and the ids of what stands there for a VM; what it lacks is left out. Of two, the later wins."""
    profile_networks = _network_of_profile(snapshot)
    cluster = snapshot.cluster_by_id.get(vm.cluster)
    # The disk that it boots from, else the first one attached; the first NIC by name, nic2 before nic10.
    disk = next((disk for disk in vm.disks if disk.bootable), vm.disks[0] if vm.disks else None)
    nic = min(vm.nics, key=lambda nic: _natural(nic.name), default=None)
    profile = nic.vnic_profile if nic else None
    data_center = cluster.data_center if cluster else None
    network = profile_networks.get(profile) if profile else None
    placement = (
        (CLUSTER, vm.cluster),
        ("billing_entity", vm.quota),
        ("customer_offer", vm.owner),
        ("customer", vm.owner),
        ("image_offer", vm.template),
        ("image", vm.template),
        ("vdc_offer", data_center),
        ("vdc", data_center),
        ("server_offer", vm.cpu_profile),
        ("server_offer", vm.instance_type),
        (SERVER, vm.id),
        ("disk_offer", disk.profile if disk else None),
        ("disk", disk.id if disk else None),
        ("network_offer", network),
        ("network", network),
        ("nic_offer", profile),
        ("nic", nic.id if nic else None),
    )
    return ((level, resource) for level, resource in placement if resource is not None)


def keys_of(snapshot: Snapshot, vm: Vm) -> Iterator[PlacementKey]:
    """Every key that a VM's placement may depend on; of two that are equally strong, the later wins."""
    keys = keys_by_resource(snapshot)
    for place in resources(snapshot, vm):
        yield from keys.get(place, ())
    yield from property_keys(vm)
    # As the operator's keys, just below the server.
    for copy in sticky_copies(snapshot).get(vm.id, ()):
        yield PlacementKey(
            level=STICKY,
            resource=vm.id,
            key_class=SYSTEM,
            name=copy.name,
            value=copy.value,
            weight=copy.weight,
        )


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _DIGITS.split(name) if part
    ]


@once_for("placement_keys")
def keys_by_resource(snapshot: Snapshot) -> dict[tuple[str, str], tuple[PlacementKey, ...]]:
    """Keys by level and the id of the resource; those of hosts, too."""
    return grouped(((key.level, key.resource), key) for key in snapshot.placement_keys)


@once_for("sticky_copies")
def sticky_copies(snapshot: Snapshot) -> dict[str, tuple[StickyCopy, ...]]:
    """The copies that a VM took from hosts, by VM id."""
    return grouped((copy.vm, copy) for copy in snapshot.sticky_copies)


@once_for("vnic_profiles")
def _network_of_profile(snapshot: Snapshot) -> dict[str, str]:
    return {profile.id: profile.network for profile in snapshot.vnic_profiles}


class UnreadableProperty(Record, frozen=True):
    """A VM whose own property holds something else than keys: all of it is ignored."""

    vm: str
    text: str

    codes: ClassVar[tuple[Code, ...]] = (Code.PROPERTY_UNREADABLE,)

    @property
    def sentence(self) -> str:
        return f"{Code.PROPERTY_UNREADABLE.text}: {self.text}"


class MissingNodeKeys(Record, frozen=True):
    """Names that other hosts of the cluster carry and this one lacks; there they count nothing."""

    host: str
    names: tuple[str, ...]

    codes: ClassVar[tuple[Code, ...]] = (Code.NODE_KEY_SET_DIFFERS,)

    @property
    def sentence(self) -> str:
        return f"{Code.NODE_KEY_SET_DIFFERS.text}: {', '.join(self.names)}"


Mistake = MistakenKey | UnreadableProperty | MissingNodeKeys
Refusal = MistakenKey | MissingNodeKeys


def find_mistakes(snapshot: Snapshot) -> tuple[Mistake, ...]:
    """All mistakes: of keys as they were written, of VMs' properties, of the hosts of a cluster."""
    from_properties = [key for vm in snapshot.vms for key in property_keys(vm)]
    keys = (*snapshot.placement_keys, *from_properties)
    carried = _host_names(snapshot.placement_keys)
    return (
        *(MistakenKey(key, codes) for key in keys if (codes := validate(key))),
        *(
            UnreadableProperty(vm.id, vm.custom_properties[NAME])
            for vm in snapshot.vms
            if not is_readable(vm.custom_properties.get(NAME, ""))
        ),
        *(
            MissingNodeKeys(host, names)
            for cluster in snapshot.clusters
            for host, names in _missing(snapshot, cluster, carried).items()
        ),
    )


def refusals(
    snapshot: Snapshot, put: Sequence[PlacementKey], removed: Sequence[PlacementKey]
) -> tuple[Refusal, ...]:
    """Why the keys of the snapshot may not be changed so: keys with mistakes, hosts that would lack some.

    A key of hosts exists on all of a cluster or on none. A host that lacks one already, since it joined
    later, may remain: `find_mistakes` reports it.
    """
    found: list[Refusal] = [MistakenKey(key, codes) for key in put if (codes := validate(key))]
    before = _host_names(snapshot.placement_keys)
    after = (before - _host_names(removed)) | _host_names(put)
    changed = {name for _, name in _host_names(chain(put, removed))}
    for cluster in snapshot.clusters:
        lacked, lacking = _missing(snapshot, cluster, before), _missing(snapshot, cluster, after)
        for host, names in lacking.items():
            if newly := tuple(name for name in names if name in changed and name not in lacked.get(host, ())):
                found.append(MissingNodeKeys(host, newly))
    return tuple(found)


def _host_names(keys: Iterable[PlacementKey]) -> set[tuple[str, str]]:
    """What all hosts of a cluster must have or lack together: not the ratios, of which each has its own."""
    return {(key.resource, key.name) for key in keys if key.level == NODE and not is_ratio(key)}


def _missing(
    snapshot: Snapshot, cluster: Cluster, carried: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """By host of a cluster the names that others carry and it does not, where hosts carry these."""
    names: dict[str, set[str]] = {host.id: set() for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    for host, name in carried:
        if host in names:
            names[host].add(name)
    every = set[str]().union(*names.values())
    return {host: tuple(sorted(every - own)) for host, own in names.items() if own != every}
