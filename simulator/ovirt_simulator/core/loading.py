"""From the state file into the engine's database, and back into a snapshot."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from ovirt_placement import model
from ovirt_simulator.core import built_in_policies as built_in
from ovirt_simulator.core.affinity import shown_priority
from ovirt_simulator.core.entities import (
    USER_VM_MANAGER,
    AffinityGroup,
    Cluster,
    DataCenter,
    Host,
    Permission,
    PolicyFilter,
    PolicyUnit,
    PolicyWeight,
    SchedulingPolicy,
    Tag,
    UnitType,
    Vm,
    stable_id,
)
from ovirt_simulator.core.state import State

Wider = TypeVar("Wider", bound=msgspec.Struct)
#: What stands after it in the name of a VM's tag is the owner, with or without permissions. The engine has
#: permissions and tags, and no owners: this tag is ours (docs/placement-keys.md).
_OWNER_TAG = "pk-customer-"


def load(state: State, snapshot: model.Snapshot, now: datetime) -> None:
    """Fill the empty database with what the snapshot holds; running VMs run since now."""
    _put_all(state, state.units, built_in.units())
    _put_all(state, state.policies, built_in.policies())
    _put_all(state, state.data_centers, _data_centers(snapshot))
    _put_all(state, state.clusters, (_cluster(state, cluster) for cluster in snapshot.clusters))
    _load_hosts(state, snapshot)
    _load_vms(state, snapshot, now)
    _load_groups(state, snapshot)
    _put_all(state, state.networks, snapshot.networks)
    _put_all(state, state.vnic_profiles, snapshot.vnic_profiles)
    state.loaded = snapshot
    state.calibrate()


def _put_all(state: State, table: dict[str, Any], records: Iterable[Any]) -> None:
    for record in records:
        state.put(table, record)


def _load_hosts(state: State, snapshot: model.Snapshot) -> None:
    """One host manages storage, as in every engine: the first, if the state file names none."""
    somebody = any(host.spm for host in snapshot.hosts)
    for index, host in enumerate(snapshot.hosts):
        address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
        spm = host.spm if somebody else index == 0
        state.put(state.hosts, _widened(Host, host, address=address, spm=spm))


def _load_groups(state: State, snapshot: model.Snapshot) -> None:
    _put_all(state, state.labels, snapshot.affinity_labels)
    for group in snapshot.affinity_groups:
        priority = shown_priority(group.priority)
        state.put(state.groups, replace(_widened(AffinityGroup, group), priority=priority))
    names = {tag for host in snapshot.hosts for tag in host.tags}
    names |= {tag for vm in snapshot.vms for tag in vm.tags}
    _put_all(state, state.tags, (Tag(id=stable_id("tag", name), name=name) for name in sorted(names)))


def _load_vms(state: State, snapshot: model.Snapshot, now: datetime) -> None:
    pending = {entry.vm: entry for entry in snapshot.pending}
    for vm in snapshot.vms:
        target = vm.migrating_to
        if vm.status == "migrating" and target is None and vm.id in pending:
            target = pending.pop(vm.id).host
        started = None if vm.host is None else now
        # An engine shows no VM as crashed.
        state.put_vm(_widened(Vm, vm, migrating_to=target, started=started, crashed=False))
        grant(state, vm)
    for entry in pending.values():
        state.put_pending(entry)


def grant(state: State, vm: model.Vm) -> None:
    """Make the owner whom the state file names the VM's manager, unless a tag names the owner."""
    if vm.owner is not None and not named_by_tags(vm):
        identity = stable_id("permission", f"{vm.id}/{vm.owner}")
        manages = Permission(id=identity, role=USER_VM_MANAGER.id, holder=vm.owner, vm=vm.id)
        state.put(state.permissions, manages)


def named_by_tags(vm: model.Vm) -> set[str]:
    """Give the owners that the VM's tags name."""
    return {tag.removeprefix(_OWNER_TAG) for tag in vm.tags if tag.startswith(_OWNER_TAG)}


def _data_centers(snapshot: model.Snapshot) -> list[DataCenter]:
    return [_widened(DataCenter, data_center) for data_center in snapshot.data_centers] or [
        DataCenter(id=stable_id("data_center", "Default"), name="Default")
    ]


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


Narrow = TypeVar("Narrow", bound=msgspec.Struct)


def snapshot(state: State) -> model.Snapshot:
    """Give the present state as the model's own records, with nothing that only an engine knows."""
    return replace(
        state.loaded,
        data_centers=tuple(_narrowed(model.DataCenter, record) for record in state.data_centers.values()),
        clusters=tuple(_saved_cluster(state, record) for record in state.clusters.values()),
        hosts=tuple(_narrowed(model.Host, record) for record in state.hosts.values()),
        vms=tuple(_narrowed(model.Vm, record) for record in state.vms.values()),
        networks=tuple(state.networks.values()),
        vnic_profiles=tuple(state.vnic_profiles.values()),
        affinity_groups=tuple(_narrowed(model.AffinityGroup, record) for record in state.groups.values()),
        affinity_labels=tuple(_narrowed(model.AffinityLabel, record) for record in state.labels.values()),
        pending=tuple(state.pending.values()),
        member_searches=(),
        unread=(),
    )


def _saved_cluster(state: State, cluster: Cluster) -> model.Cluster:
    policy = state.policies[cluster.policy_id]
    units = state.units
    external = model.SchedulingPolicy(
        filters=tuple(units[f.unit].name for f in policy.filters if not units[f.unit].internal),
        weights={units[w.unit].name: w.factor for w in policy.weights if not units[w.unit].internal},
        balance=None
        if policy.balance is None or units[policy.balance].internal
        else units[policy.balance].name,
        engine_filters=_engine_filters(state, cluster, policy),
        unit_ids=_unit_ids(state, cluster, policy),
    )
    factors = {weight.unit: weight.factor for weight in policy.weights}
    own = {
        name: factors[unit]
        for name, unit in built_in.STATE_FILE_WEIGHTS.items()
        if unit in factors and (name in cluster.policy or factors[unit] != _usual_factor(state, unit))
    }
    return msgspec.structs.replace(
        _narrowed(model.Cluster, cluster),
        policy={name: factor for name, factor in cluster.policy.items() if name not in own} | own,
        scheduling_policy=None if external == model.SchedulingPolicy() else external,
    )


def _engine_filters(state: State, cluster: Cluster, policy: SchedulingPolicy) -> tuple[str, ...]:
    """The engine's own filters, if the state file named any."""
    if cluster.scheduling_policy is None or not cluster.scheduling_policy.engine_filters:
        return ()
    units = (state.units[entry.unit] for entry in policy.filters)
    return tuple(unit.name for unit in units if unit.internal)


def _unit_ids(state: State, cluster: Cluster, policy: SchedulingPolicy) -> dict[str, str]:
    """Ids of weights by name, if the state file named the engine's own filters as well."""
    if not _engine_filters(state, cluster, policy):
        return {}
    names = {unit: name for name, unit in built_in.STATE_FILE_WEIGHTS.items()}
    return {names.get(entry.unit, state.units[entry.unit].name): entry.unit for entry in policy.weights}


def _usual_factor(state: State, unit: str) -> int | None:
    usual = state.policies[built_in.NONE_POLICY].weights
    return next((weight.factor for weight in usual if weight.unit == unit), None)


def _narrowed(kind: type[Narrow], record: msgspec.Struct) -> Narrow:
    return kind(**{name: getattr(record, name) for name in kind.__struct_fields__})
