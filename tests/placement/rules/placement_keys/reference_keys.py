"""Which keys a VM has, written down a second time: step 2 of `reference.py`."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ovirt_placement.model import PlacementKey, Snapshot, Vm

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
