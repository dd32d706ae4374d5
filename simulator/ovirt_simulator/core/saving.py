"""From the engine's database back into a snapshot: what rules judge, and the state file."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ovirt_placement import model

from . import built_in_policies as built_in
from .entities import Cluster, SchedulingPolicy
from .state import State

Narrow = TypeVar("Narrow", bound=msgspec.Struct)


def snapshot(state: State) -> model.Snapshot:
    """Give the present state as the model's own records, with nothing that only an engine knows."""
    return model.Snapshot(
        data_centers=tuple(_narrowed(model.DataCenter, record) for record in state.data_centers.values()),
        clusters=tuple(_cluster(state, record) for record in state.clusters.values()),
        hosts=tuple(_narrowed(model.Host, record) for record in state.hosts.values()),
        vms=tuple(_narrowed(model.Vm, record) for record in state.vms.values()),
        networks=tuple(state.networks.values()),
        vnic_profiles=tuple(state.vnic_profiles.values()),
        affinity_groups=tuple(_narrowed(model.AffinityGroup, record) for record in state.groups.values()),
        affinity_labels=tuple(_narrowed(model.AffinityLabel, record) for record in state.labels.values()),
        pending=tuple(state.pending.values()),
        placement_keys=state.placement_keys,
        frozen_keys=state.frozen_keys,
        sticky_copies=state.sticky_copies,
        placement_rules=state.placement_rules,
        draining_hosts=state.draining_hosts,
    )


def live_snapshot(state: State) -> model.Snapshot:
    """Give the present state for the scheduler: the engine's records as they are, which is quicker."""
    return model.Snapshot(
        clusters=tuple(state.clusters.values()),
        hosts=tuple(state.hosts.values()),
        vms=tuple(state.vms.values()),
        affinity_groups=tuple(state.groups.values()),
        affinity_labels=tuple(state.labels.values()),
        pending=tuple(state.pending.values()),
    )


def _cluster(state: State, cluster: Cluster) -> model.Cluster:
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
