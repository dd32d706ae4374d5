"""From the state file into the engine's database, to what every engine ships, and back into a snapshot."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from ovirt_placement import model
from ovirt_simulator.core.affinity import shown_priority
from ovirt_simulator.core.entities import (
    USER_VM_MANAGER,
    AffinityGroup,
    Cluster,
    DataCenter,
    Host,
    Permission,
    PolicyEntry,
    PolicyUnit,
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
    _put_all(state, state.units, _own_units())
    _put_all(state, state.policies, (_own_policy(*each) for each in _POLICIES))
    known = snapshot.data_centers or (DataCenter(id=stable_id("data_center", "Default"), name="Default"),)
    _put_all(state, state.data_centers, (_widened(DataCenter, data_center) for data_center in known))
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
    is_known = any(host.spm for host in snapshot.hosts)
    for index, host in enumerate(snapshot.hosts):
        address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
        spm = host.spm if is_known else index == 0
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


def _cluster(state: State, cluster: model.Cluster) -> Cluster:
    policy = _policy_of(state, cluster)
    data_center = cluster.data_center or next(iter(state.data_centers))
    return replace(_widened(Cluster, cluster), data_center=data_center, policy_id=policy.id)


def _policy_of(state: State, cluster: model.Cluster) -> SchedulingPolicy:
    """Find or add the policy that enables what the cluster's entry says, on top of the policy `none`."""
    base = state.policies[_NONE_POLICY]
    factors = {
        unit: cluster.policy[name] for name, unit in _STATE_FILE_WEIGHTS.items() if name in cluster.policy
    }
    external, name = cluster.scheduling_policy or model.SchedulingPolicy(), f"{cluster.name}-placement"
    filters = [PolicyEntry(unit=_external(state, UnitType.FILTER, each)) for each in external.filters]
    weights = [replace(own, factor=factors.get(own.unit, own.factor)) for own in base.weights]
    for each, factor in external.weights.items():
        weights.append(PolicyEntry(unit=_external(state, UnitType.WEIGHT, each), factor=factor))
    balance = base.balance
    if external.balance:
        balance = _external(state, UnitType.LOAD_BALANCING, external.balance)
    wanted = SchedulingPolicy(
        id=stable_id("policy", name),
        name=name,
        description=base.description,
        filters=(*base.filters, *filters),
        weights=tuple(weights),
        balance=balance,
        properties=base.properties,
    )
    for policy in state.policies.values():
        if replace(policy, id=wanted.id, name=name, locked=False, default=False) == wanted:
            return policy
    state.put(state.policies, wanted)
    return wanted


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
    """The engine's own filters and the ids of weights are saved if the state file named any such filters."""
    policy, units = state.policies[cluster.policy_id], state.units
    own_filters = [units[f.unit].name for f in policy.filters if units[f.unit].internal]
    names = {unit: name for name, unit in _STATE_FILE_WEIGHTS.items()}
    unit_ids = {names.get(w.unit, units[w.unit].name): w.unit for w in policy.weights}
    named = own_filters and cluster.scheduling_policy and cluster.scheduling_policy.engine_filters
    balance = None if policy.balance is None else units[policy.balance]
    external = model.SchedulingPolicy(
        filters=tuple(units[f.unit].name for f in policy.filters if not units[f.unit].internal),
        weights={units[w.unit].name: w.factor for w in policy.weights if not units[w.unit].internal},
        balance=None if balance is None or balance.internal else balance.name,
        engine_filters=tuple(own_filters) if named else (),
        unit_ids=unit_ids if named else {},
    )
    factors = {weight.unit: weight.factor for weight in policy.weights}
    usual = {weight.unit: weight.factor for weight in state.policies[_NONE_POLICY].weights}
    own = {
        name: factors[unit]
        for name, unit in _STATE_FILE_WEIGHTS.items()
        if unit in factors and (name in cluster.policy or factors[unit] != usual.get(unit))
    }
    return msgspec.structs.replace(
        _narrowed(model.Cluster, cluster),
        policy={name: factor for name, factor in cluster.policy.items() if name not in own} | own,
        scheduling_policy=None if external == model.SchedulingPolicy() else external,
    )


def _narrowed(kind: type[Narrow], record: msgspec.Struct) -> Narrow:
    return kind(**{name: getattr(record, name) for name in kind.__struct_fields__})


# -- The scheduling policies and policy units that every engine ships, with their documented ids. Source: the
# engine's InternalPolicyUnits and InternalClusterPolicies.
_FILTERS = {
    "CPU": "6d636bf6-a35c-4f9d-b68d-0731f720cddc",
    "CPUOverloaded": "98842bc5-4094-4b83-8224-7b50f86a94c9",
    "Emulated-Machine": "58894b5b-d55d-4f85-8f82-5bf217e640b0",
    "HA": "e659c871-0bf1-4ccc-b748-f28f5d08dffd",
    "Swap": "43b9e654-337f-4b0d-a896-cbb22ce5a7fc",
    "Memory": "c9ddbb34-0e1d-4061-a8d7-b0893fa80932",
    "NUMA": "fcbfe4b1-b83e-4428-b9d3-b3d348b93be6",
    "HugePages": "23e07b34-66dd-4735-bc45-bcddded02c05",
    "Migration": "e659c871-0bf1-4ccc-b748-f28f5d08ddda",
    "VmAffinityGroups": "84e6ddee-ab0d-42dd-82f0-c297779db566",
    "VmToHostsAffinityGroups": "e69808a9-8a41-40f1-94ba-dd5d385d82d8",
    "Network": "72163d1c-9468-4480-99d9-0888664eb143",
    "HostedEngineSpares": "53bff075-8306-446f-a53b-9c872a29d197",
    "Migration-Tsc-Frequency": "47ea3cd0-8a2f-438d-9f63-49534178882a",
    "Host-hooks": "aae8c702-4756-4934-b84c-8daf59efc134",
}
#: CPU comes first and Host-hooks last.
_POSITIONS = {"CPU": -1, "Host-hooks": 1}
#: Weight units of policy `none`: id and factor.
_WEIGHTS = {
    "OptimalForCpuEvenDistribution": ("7db4ab05-81ab-42e8-868a-aee2df483edb", 2),
    "OptimalForMemoryEvenDistribution": ("4134247a-9c58-4b9a-8593-530bb9e37c59", 1),
    "PreferredHosts": ("591cdb81-ba67-45b4-9642-e28f61a97d57", 99),
    "HA": ("98e92667-6161-41fb-b3fa-34f820ccbc4b", 1),
    "OptimalForHaReservation": ("7f262d70-6cac-11e3-981f-0800200c9a66", 1),
    "VmAffinityGroups": ("84e6ddee-ab0d-42dd-82f0-c297779db567", 1),
    "VmToHostsAffinityGroups": ("427aed70-dae3-48ba-8fe9-a902a9d563c8", 20),
    "CPU for high performance VMs": ("71931e14-f0e6-4f91-a7c8-d494a26e3a09", 4),
    "CPU and NUMA pinning compatibility": ("1b14ac11-20e9-4593-a149-2eb83c60a330", 5),
}
_NO_BALANCE = "38440000-8cf0-14bd-c43e-10b96e4ef00a"
_EVEN_BALANCE = stable_id(UnitType.LOAD_BALANCING, "OptimalForEvenDistribution")

#: How the state file's `policy` of a cluster names the engine's own weight units.
_STATE_FILE_WEIGHTS = {
    "vm_affinity_weight": _WEIGHTS["VmAffinityGroups"][0],
    "vm_to_host_weight": _WEIGHTS["VmToHostsAffinityGroups"][0],
    "ha_weight": _WEIGHTS["OptimalForHaReservation"][0],
    "even_cpu_weight": _WEIGHTS["OptimalForCpuEvenDistribution"][0],
    "even_memory_weight": _WEIGHTS["OptimalForMemoryEvenDistribution"][0],
    "preferred_hosts_weight": _WEIGHTS["PreferredHosts"][0],
}

#: Source: PolicyUnitParameter.
_OVERLOAD = {"HighUtilization": "^([5-9][0-9])$", "CpuOverCommitDurationMinutes": "^([1-9][0-9]*)$"}
_CPU_RATIO = {"VCpuToPhysicalCpuRatio": "^([0-2](\\.([0-9]+))?)$"}
_FREE_MEMORY = {
    "MaxFreeMemoryForOverUtilized": "^([1-9][0-9]*)$",
    "MinFreeMemoryForUnderUtilized": "^([1-9][0-9]*)$",
}

_PROPERTIES = {
    "CPUOverloaded": _OVERLOAD,
    "Swap": {"MaximumAllowedSwapUsage": "^1?[0-9]?[0-9]$"},
    "HostedEngineSpares": {"HeSparesCount": "^([0-9][0-9]*)$"},
    "OptimalForCpuEvenDistribution": _CPU_RATIO,
    "OptimalForEvenDistribution": _OVERLOAD | _FREE_MEMORY | _CPU_RATIO,
    "OptimalForHaReservation": {"ScaleDown": "(100|[1-9]|[1-9][0-9])$"},
}

_NONE_POLICY = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"
#: All are locked; the first is the default.
_POLICIES = (
    (_NONE_POLICY, "none", _NO_BALANCE),
    ("20d25257-b4bd-4589-92a6-c4c5c5d3fd1a", "evenly_distributed", _EVEN_BALANCE),
    ("5a2b0939-7d46-4b73-a469-e9c2c7fc6a53", "power_saving", _NO_BALANCE),
    ("8d5d7bec-68de-4a67-b53e-0ac54686d579", "vm_evenly_distributed", _NO_BALANCE),
    ("7677771e-5eab-422e-83fa-dc04080d21b7", "cluster_maintenance", _NO_BALANCE),
)


def _own_units() -> tuple[PolicyUnit, ...]:
    """Give the engine's own units, as its API shows them: without the filters that count in every policy."""
    return (
        *(_own_unit(name, UnitType.FILTER, unit) for name, unit in _FILTERS.items()),
        *(_own_unit(name, UnitType.WEIGHT, unit) for name, (unit, _) in _WEIGHTS.items()),
        _own_unit("None", UnitType.LOAD_BALANCING, _NO_BALANCE),
        _own_unit("OptimalForEvenDistribution", UnitType.LOAD_BALANCING, _EVEN_BALANCE),
    )


def _own_unit(name: str, kind: UnitType, unit: str) -> PolicyUnit:
    properties = _PROPERTIES.get(name, {})
    return PolicyUnit(id=unit, name=name, type=kind, internal=True, properties=properties)


def _own_policy(policy: str, name: str, balance: str) -> SchedulingPolicy:
    return SchedulingPolicy(
        id=policy,
        name=name,
        locked=True,
        default=policy == _NONE_POLICY,
        filters=tuple(
            PolicyEntry(unit=unit, position=_POSITIONS.get(name, 0)) for name, unit in _FILTERS.items()
        ),
        weights=tuple(PolicyEntry(unit=unit, factor=factor) for unit, factor in _WEIGHTS.values()),
        balance=balance,
        properties={"CpuOverCommitDurationMinutes": "2", "HighUtilization": "80"},
    )
