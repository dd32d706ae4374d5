"""From the state file into the engine's database."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from ovirt_placement import model

from . import built_in_policies as built_in
from . import ownership
from .affinity import shown_priority
from .entities import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Host,
    PolicyFilter,
    PolicyUnit,
    PolicyWeight,
    SchedulingPolicy,
    Tag,
    UnitType,
    Vm,
    stable_id,
)
from .state import State

Wider = TypeVar("Wider", bound=msgspec.Struct)


def load(state: State, snapshot: model.Snapshot, now: datetime) -> None:
    """Fill the empty database with what the snapshot holds; running VMs and hosts run since now."""
    _load_policies(state)
    for data_center in _data_centers(snapshot):
        state.put(state.data_centers, data_center)
    for cluster in snapshot.clusters:
        state.put(state.clusters, _cluster(state, cluster))
    _load_hosts(state, snapshot, now)
    _load_vms(state, snapshot, now)
    _load_groups(state, snapshot)
    for network in snapshot.networks:
        state.put(state.networks, network)
    for profile in snapshot.vnic_profiles:
        state.put(state.vnic_profiles, profile)
    state.placement_keys = snapshot.placement_keys
    state.frozen_keys = snapshot.frozen_keys
    state.sticky_copies = snapshot.sticky_copies
    state.placement_rules = snapshot.placement_rules
    state.draining_hosts = snapshot.draining_hosts
    state.calibrate()


def _load_policies(state: State) -> None:
    for unit in built_in.units():
        state.put(state.units, unit)
    for policy in built_in.policies():
        state.put(state.policies, policy)


def _load_hosts(state: State, snapshot: model.Snapshot, now: datetime) -> None:
    """One host manages storage, as in every engine: the first, if the state file names none."""
    somebody = any(host.spm for host in snapshot.hosts)
    for index, host in enumerate(snapshot.hosts):
        address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
        spm = host.spm if somebody else index == 0
        state.put(state.hosts, _widened(Host, host, address=address, booted=now, spm=spm))


def _load_groups(state: State, snapshot: model.Snapshot) -> None:
    for label in snapshot.affinity_labels:
        state.put(state.labels, _widened(AffinityLabel, label))
    for group in snapshot.affinity_groups:
        priority = shown_priority(group.priority)
        state.put(state.groups, replace(_widened(AffinityGroup, group), priority=priority))
    names = {tag for host in snapshot.hosts for tag in host.tags}
    names |= {tag for vm in snapshot.vms for tag in vm.tags}
    for name in sorted(names):
        state.put(state.tags, Tag(id=stable_id("tag", name), name=name))


def _load_vms(state: State, snapshot: model.Snapshot, now: datetime) -> None:
    pending = {entry.vm: entry for entry in snapshot.pending}
    for vm in snapshot.vms:
        target = vm.migrating_to
        if vm.status == "migrating" and target is None and vm.id in pending:
            target = pending.pop(vm.id).host
        started = None if vm.host is None else now
        # An engine shows no VM as crashed.
        more = {"created": now, "started": started, "crashed": False}
        state.put_vm(_widened(Vm, vm, migrating_to=target, **more))
        ownership.grant(state, vm)
    for entry in pending.values():
        state.put_pending(entry)


def _data_centers(snapshot: model.Snapshot) -> list[DataCenter]:
    known = [_widened(DataCenter, data_center) for data_center in snapshot.data_centers] or [
        DataCenter(id=stable_id("data_center", "Default"), name="Default")
    ]
    return [replace(each, compatibility=_lowest(snapshot, each.id, known[0].id)) for each in known]


def _lowest(snapshot: model.Snapshot, data_center_id: str, first: str) -> str:
    """Give the lowest version of a data center's clusters; those of none belong to the first one."""
    versions = [
        cluster.compatibility
        for cluster in snapshot.clusters
        if (cluster.data_center or first) == data_center_id
    ]
    return min(versions, key=_ordered, default="4.7")


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _cluster(state: State, cluster: model.Cluster) -> Cluster:
    policy = _policy_of(state, cluster)
    data_center = cluster.data_center or next(iter(state.data_centers))
    return replace(_widened(Cluster, cluster), data_center=data_center, policy_id=policy.id)


def _policy_of(state: State, cluster: model.Cluster) -> SchedulingPolicy:
    """Find or add the policy that enables what the cluster's entry says, on top of the policy `none`."""
    base = state.policies[built_in.NONE_POLICY]
    factors = {
        built_in.STATE_FILE_WEIGHTS[name]: factor
        for name, factor in cluster.policy.items()
        if name in built_in.STATE_FILE_WEIGHTS
    }
    external = cluster.scheduling_policy or model.SchedulingPolicy()
    wanted = replace(
        base,
        filters=(
            *base.filters,
            *(PolicyFilter(unit=_external(state, UnitType.FILTER, name)) for name in external.filters),
        ),
        weights=(
            *(replace(weight, factor=factors.get(weight.unit, weight.factor)) for weight in base.weights),
            *(
                PolicyWeight(unit=_external(state, UnitType.WEIGHT, name), factor=factor)
                for name, factor in external.weights.items()
            ),
        ),
        balance=_external(state, UnitType.LOAD_BALANCING, external.balance)
        if external.balance
        else base.balance,
    )
    for policy in state.policies.values():
        if (
            replace(wanted, id=policy.id, name=policy.name, locked=policy.locked, default=policy.default)
            == policy
        ):
            return policy
    name = f"{cluster.name}-placement"
    policy = replace(wanted, id=stable_id("policy", name), name=name, locked=False, default=False)
    state.put(state.policies, policy)
    return policy


def _external(state: State, kind: UnitType, name: str) -> str:
    """Give the id of an external unit; one that the state file names is known and enabled."""
    unit = PolicyUnit(id=stable_id(kind, name), name=name, type=kind, internal=False)
    if unit.id not in state.units:
        state.put(state.units, unit)
    return unit.id


def _widened(kind: type[Wider], record: msgspec.Struct, **more: Any) -> Wider:
    return kind(**(asdict(record) | more))
