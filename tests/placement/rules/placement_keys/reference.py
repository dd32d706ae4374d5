"""Placement keys written down a second time, in the simplest way: what tests hold the rules against.

It follows docs/placement-keys.md step by step and host by host, with exact fractions, keeps nothing, and
shares no code with the rules: of the product it knows the records of a snapshot and of the settings alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ovirt_placement.model import FrozenKeys, Host, PlacementKey, Snapshot, StickyCopy, Vm
from ovirt_placement.rules.placement_keys.keys import KeySettings

#: Weakest first.
LADDER = (
    "cluster",
    "billing_entity",
    "customer_offer",
    "customer",
    "image_offer",
    "image",
    "vdc_offer",
    "vdc",
    "server_offer",
    "server_sticky",
    "server",
    "disk_offer",
    "disk",
    "network_offer",
    "network",
    "nic_offer",
    "nic",
)
CUSTOMERS_OWN = ("image", "server", "disk", "network", "nic")
SPECIAL = ("#RAM", "#CPU", "#LOAD")

#: By name, value and weight.
Wanted = dict[str, tuple[Fraction, Fraction]]


def parse(written: float | str | None) -> Fraction | None:
    """The number that is written there, if it is one."""
    text = str(written).strip()
    try:
        decimal = Decimal(text)
    except InvalidOperation:
        return None
    return Fraction(decimal) if decimal.is_finite() and text.isascii() and "_" not in text else None


def compiled(snapshot: Snapshot, vm: Vm) -> tuple[Wanted, Wanted]:
    """The operator's keys of a VM, and the customer's, who comes after the reseller on each level."""
    system: Wanted = {}
    customer: Wanted = {}
    for level in LADDER:
        for setter, target in (("system", system), ("be", customer), ("customer", customer)):
            for resource in placement(snapshot, vm, level):
                for key in keys_on(snapshot, vm, level, resource):
                    if key.key_class == setter and takes_part(key):
                        target[key.name] = known(key.value), known(key.weight)
    return system, customer


def known(written: float | str | None) -> Fraction:
    found = parse(written)
    assert found is not None
    return found


def takes_part(key: PlacementKey) -> bool:
    """An invalid key is ignored, and so is a normal one."""
    value, weight = parse(key.value), parse(key.weight)
    if key.name.strip() in {"", "_", "#"} or value is None or not weight:
        return False
    if key.key_class == "customer" and key.level not in CUSTOMERS_OWN:
        return False
    return not (key.level == "cluster" and key.name in SPECIAL and value != 0)


def keys_on(snapshot: Snapshot, vm: Vm, level: str, resource: str) -> list[PlacementKey]:
    """The keys of one object, and what counts as such: copies of sticky keys, a user's own property."""
    found = [key for key in snapshot.placement_keys if (key.level, key.resource) == (level, resource)]
    if level == "server":
        found += from_property(vm)
    if level == "server_sticky":
        found += [
            PlacementKey(
                level=level, resource=vm.id, key_class="system", name=copy.name, value=copy.value,
                weight=copy.weight,
            )
            for copy in snapshot.sticky_copies
            if copy.vm == vm.id
        ]  # fmt: skip
    return found


def from_property(vm: Vm) -> list[PlacementKey]:
    """NAME:VALUE:WEIGHT,... - all of it in that form, or nothing."""
    found = []
    for entry in vm.custom_properties.get("placement_keys", "").split(","):
        parts = re.fullmatch("([A-Za-z_][A-Za-z0-9_.-]{0,49}):(-?[0-9]+|-?[0-9]+[.][0-9]+):([0-9.-]+)", entry)
        if parts is None:
            return []
        name, value, weight = parts.groups()
        found.append(
            PlacementKey(
                level="server", resource=vm.id, key_class="customer", name=name, value=value,
                weight=float(weight),
            )
        )  # fmt: skip
    return found


def placement(snapshot: Snapshot, vm: Vm, level: str) -> list[str]:
    """The object on a level of a VM's hierarchy; of two offers the weaker one first."""
    disks = [disk for disk in vm.disks if disk.bootable] or list(vm.disks)
    nics = sorted(vm.nics, key=lambda nic: [int(part) for part in re.findall(r"\d+", nic.name)])
    profiles = [nic.vnic_profile for nic in nics[:1]]
    networks = [profile.network for profile in snapshot.vnic_profiles if profile.id in profiles]
    data_centers = [cluster.data_center for cluster in snapshot.clusters if cluster.id == vm.cluster]
    found = {
        "cluster": [vm.cluster],
        "billing_entity": [vm.quota],
        "customer_offer": [vm.owner],
        "customer": [vm.owner],
        "image_offer": [vm.template],
        "image": [vm.template],
        "vdc_offer": data_centers,
        "vdc": data_centers,
        "server_offer": [vm.cpu_profile, vm.instance_type],
        "server_sticky": [vm.id],
        "server": [vm.id],
        "disk_offer": [disk.profile for disk in disks[:1]],
        "disk": [disk.id for disk in disks[:1]],
        "network_offer": networks,
        "network": networks,
        "nic_offer": profiles,
        "nic": [nic.id for nic in nics[:1]],
    }
    return [resource for resource in found[level] if resource is not None]


#: Of a host: a name and a value, as often as there is one.
Found = list[tuple[str, Fraction]]


# Steps 1 and 3: what is on a host, without the VM that is to be placed.


@dataclass(frozen=True)
class Present:
    """A VM on a host, or on its way there: what it takes, and whether its keys count there."""

    vm: Vm
    memory_mb: int
    arriving: bool
    counts: bool


def present(snapshot: Snapshot, host: Host) -> list[Present]:
    """One that migrates takes memory at both ends, and its keys count at the target."""
    found = []
    for vm in snapshot.vms:
        promises = [promise for promise in snapshot.pending if promise.vm == vm.id]
        targets = [*(promise.host for promise in promises), *([vm.migrating_to] if vm.migrating_to else [])]
        here, arriving = vm.host == host.id, host.id in targets and vm.host != host.id
        if not here and not arriving:
            continue
        promised = [one.memory_mb for one in promises if one.host == host.id and one.memory_mb is not None]
        memory = promised[0] if arriving and promised else vm.memory_mb
        found.append(Present(vm, memory, arriving, host.id in targets if targets else here))
    return found


def brought(snapshot: Snapshot, vm: Vm) -> Found:
    """The customer keys recorded at its start; the present ones if it is starting, or nothing is recorded."""
    for record in snapshot.frozen_keys:
        if record.vm == vm.id and vm.host is not None:
            return [(name, known(value)) for name, value in record.keys]
    return [(name, value) for name, (value, _) in compiled(snapshot, vm)[1].items()]


def others_on(snapshot: Snapshot, host: Host, vm: Vm) -> list[Present]:
    return [one for one in present(snapshot, host) if one.vm.id != vm.id]


def own_ratio(snapshot: Snapshot, host: Host, name: str) -> Fraction | None:
    """What the operator says of this host alone, if that can be."""
    for key in snapshot.placement_keys:
        if (key.level, key.resource, key.key_class, key.name) == ("node", host.id, "system", name):
            written = parse(key.value)
            return written if written is not None and 0 < written < 1000 else None
    return None


def memory_ratio(snapshot: Snapshot, host: Host, settings: KeySettings) -> Fraction:
    (cluster,) = (cluster for cluster in snapshot.clusters if cluster.id == host.cluster)
    own = own_ratio(snapshot, host, "#RAM_RATIO")
    return own or settings.memory_ratio or Fraction(cluster.memory_overcommit_percent, 100)


def room(snapshot: Snapshot, host: Host, vm: Vm, settings: KeySettings) -> tuple[Fraction, int]:
    """What is not handed out, and what is physically free, without the VM."""
    handed_out = sum(one.memory_mb for one in others_on(snapshot, host, vm))
    uncontended = host.memory_mb * memory_ratio(snapshot, host, settings) - handed_out
    own = [one for one in present(snapshot, host) if one.vm.id == vm.id]
    if host.memory_free_mb is not None:
        return uncontended, host.memory_free_mb + sum(one.memory_mb for one in own if not one.arriving)
    return uncontended, host.free_mb + sum(one.memory_mb for one in own)


def has_room(snapshot: Snapshot, host: Host, vm: Vm, settings: KeySettings) -> bool:
    """Step 1; what the engine says is free has the overhead taken off already."""
    need = vm.memory_mb + settings.overhead_mb
    uncontended, contended = room(snapshot, host, vm, settings)
    taken_off = settings.overhead_mb if host.memory_free_mb is None else 0
    return host.status == "up" and uncontended > need and contended + taken_off > need


def special(snapshot: Snapshot, host: Host, vm: Vm, settings: KeySettings) -> Found:
    """Special keys; a host that has nothing to hand out is full."""
    (cluster,) = (cluster for cluster in snapshot.clusters if cluster.id == host.cluster)
    there = others_on(snapshot, host, vm)
    memory = host.memory_mb * memory_ratio(snapshot, host, settings)
    cpus = host.threads if cluster.count_threads_as_cores and host.threads else host.cores
    own = own_ratio(snapshot, host, "#CPU_RATIO")
    vcpus = cpus * (own or settings.cpu_ratio or Fraction(cluster.cpu_overcommit_percent, 100))
    found = [
        ("#RAM", sum(one.memory_mb for one in there) / memory if memory else Fraction(1)),
        ("#CPU", sum(one.vm.vcpus for one in there) / vcpus if vcpus else Fraction(1)),
    ]
    if settings.load_average and host.load_average_5m is not None and cpus:
        found.append(("#LOAD", known(host.load_average_5m) / cpus))
    elif host.cpu_percent is not None:
        found.append(("#LOAD", known(host.cpu_percent) / 100))
    return [(name, max(Fraction(0), min(Fraction(1), value))) for name, value in found]


def own_keys(snapshot: Snapshot, host: Host) -> list[PlacementKey]:
    """A host's own keys; special names cannot be set, and words are ignored."""
    return [
        key
        for key in snapshot.placement_keys
        if (key.level, key.resource, key.key_class) == ("node", host.id, "system")
        and key.name.strip() not in {"", "_"}
        and not key.name.startswith("#")
        and parse(key.value) is not None
    ]


def system_list(snapshot: Snapshot, host: Host, vm: Vm, settings: KeySettings) -> Found:
    own = [key for key in own_keys(snapshot, host) if not key.name.startswith("_")]
    return [(key.name, known(key.value)) for key in own] + special(snapshot, host, vm, settings)


def customer_list(snapshot: Snapshot, host: Host, vm: Vm, settings: KeySettings) -> Found:
    own = [key for key in own_keys(snapshot, host) if key.name.startswith("_")]
    found = [(key.name, known(key.value)) for key in own]
    for one in others_on(snapshot, host, vm):
        for name, value in brought(snapshot, one.vm) if one.counts else []:
            reserved = name.startswith("_") and not settings.reserved_from_vms
            if not reserved and not name.startswith("#"):
                found.append((name, value))
    return found


# Steps 4 and 5: score, rounds, choice.


def score(wanted: Wanted, found: Found) -> Fraction:
    total = Fraction(0)
    for name, value in found:
        if name in wanted:
            own, weight = wanted[name]
            total += weight * max(Fraction(0), 1 - abs(own - value))
    return total


def thresholds(settings: KeySettings) -> list[Fraction]:
    if settings.steps == 1:
        return [settings.final]
    gap = (settings.initial - settings.final) / (settings.steps - 1)
    return [settings.initial - (step - 1) * gap for step in range(1, settings.steps + 1)]


@dataclass(frozen=True)
class Placement:
    """What the steps find; a host without room has no score."""

    scores: dict[str, Fraction]
    customer_scores: dict[str, Fraction]
    round: int | None
    candidates: list[str]
    choice: list[str]
    failed: str | None


def place(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], settings: KeySettings) -> Placement:
    """Lower the threshold until somebody exceeds it, then let the customer choose."""
    system, customer = compiled(snapshot, vm)
    room = [host for host in hosts if has_room(snapshot, host, vm, settings)]
    scores = {host.id: score(system, system_list(snapshot, host, vm, settings)) for host in room}
    wishes = {host.id: score(customer, customer_list(snapshot, host, vm, settings)) for host in room}
    for number, threshold in enumerate(thresholds(settings), 1):
        band = [host.id for host in room if scores[host.id] > threshold]
        if band:
            best = max(wishes[host] for host in band)
            choice = [host for host in band if wishes[host] == best]
            return Placement(scores, wishes, number, band, choice, None)
    return Placement(scores, wishes, None, [], [], "threshold" if room else "constraint")


# Step 6, and what a start records.


def after_start(snapshot: Snapshot, vm: Vm, host: Host) -> tuple[FrozenKeys, set[StickyCopy]]:
    """What is frozen when a VM starts on a host, and the sticky copies that it then has."""
    frozen = tuple((name, float(value)) for name, (value, _) in compiled(snapshot, vm)[1].items())
    copies = {copy.name: copy for copy in snapshot.sticky_copies if copy.vm == vm.id}
    for key in own_keys(snapshot, host):
        if key.sticky and not key.name.startswith("_") and parse(key.weight):
            value, weight = float(known(key.value)), float(known(key.weight))
            copies[key.name] = StickyCopy(vm=vm.id, name=key.name, value=value, weight=weight)
    return FrozenKeys(vm=vm.id, keys=frozen), set(copies.values())


def acceptable(snapshot: Snapshot, vm: Vm, hosts: Iterable[Host], settings: KeySettings) -> list[str]:
    """What the filter leaves: room and a score above the last threshold."""
    placement = place(snapshot, vm, list(hosts), settings)
    return [host for host, points in placement.scores.items() if points > settings.final]
