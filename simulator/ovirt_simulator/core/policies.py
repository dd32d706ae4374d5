"""Scheduling policies and units, with the engine's bugs; and the policy and properties of a cluster.

Source: the engine's ClusterPolicyCRUDCommand, SchedulingPolicyMapper, ClusterOperationCommandBase and
CustomPropertiesUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from . import built_in_policies as built_in
from . import rejections
from .backend import Backend
from .entities import (
    ADMIN,
    Caller,
    Cluster,
    PolicyBalance,
    PolicyFilter,
    PolicyUnit,
    PolicyWeight,
    SchedulingPolicy,
    UnitType,
)
from .events import EventCode, EventType
from .rejections import existing
from .state import State


def known_properties(policy: SchedulingPolicy, units: Mapping[str, PolicyUnit]) -> dict[str, str]:
    """Give the regular expression of every property that a unit of the policy knows."""
    attached = [*(f.unit for f in policy.filters), *(w.unit for w in policy.weights)]
    if policy.balance is not None:
        attached.append(policy.balance)
    return {name: regex for unit in attached for name, regex in units[unit].properties.items()}


def check_properties(properties: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse unknown properties, and values that do not match as a whole. Raises `Rejected`."""
    for name, value in properties.items():
        if name not in known or re.fullmatch(known[name], value) is None:
            raise rejections.policy_parameters_invalid()


def check_policy(policy: SchedulingPolicy, state: State) -> None:
    """Refuse a policy that the engine does not save. Raises `Rejected`."""
    if policy.locked:
        raise rejections.policy_parameters_invalid()
    if any(other.name == policy.name and other.id != policy.id for other in state.policies.values()):
        raise rejections.bad_parameters("Cannot save Scheduling Policy. The name is already in use.")
    _check_units([entry.unit for entry in policy.filters], UnitType.FILTER, state)
    _check_units([entry.unit for entry in policy.weights], UnitType.WEIGHT, state)
    _check_units([] if policy.balance is None else [policy.balance], UnitType.LOAD_BALANCING, state)
    positions = [entry.position for entry in policy.filters]
    if positions.count(-1) > 1 or positions.count(1) > 1:
        raise rejections.bad_parameters(
            "Cannot save Scheduling Policy. Only one filter can be first, and only one last."
        )
    if any(entry.factor < 0 for entry in policy.weights):
        raise rejections.bad_parameters("Cannot save Scheduling Policy. Function factor cannot be negative.")
    check_properties(policy.properties, known_properties(policy, state.units))


def _check_units(unit_ids: Sequence[str], kind: UnitType, state: State) -> None:
    if any(state.units[unit_id].type is not kind for unit_id in unit_ids):
        raise rejections.bad_parameters(f"Cannot save Scheduling Policy. A unit is not of type {kind}.")
    if len(set(unit_ids)) < len(unit_ids):
        raise rejections.bad_parameters("Cannot save Scheduling Policy. A unit is attached more than once.")


class PolicyCommands:
    """Commands on scheduling policies; all raise `Rejected` with HTTP 400, or `NotFound`.

    The engine changes the policy in its memory first and validates it then. So a unit that it refuses stays
    there, and spoils every later change of that policy, until it restarts.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def update_cluster(
        self,
        cluster_id: str,
        *,
        name: str | None = None,
        policy_id: str | None = None,
        policy_name: str | None = None,
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
        **changes: Any,
    ) -> Cluster:
        """Assign a policy (if unknown, the default), and merge properties into the present ones.

        Properties that no unit of the policy knows are dropped; the others must match their expression.
        `changes` are fields of the cluster; what is None stays as it is.
        """
        with self._backend.lock:
            before = existing(self._state.clusters, cluster_id)
            if name is not None and name != before.name:
                self._check_name("edit", name)
            given = {key: value for key, value in changes.items() if value is not None}
            cluster = replace(before, name=name or before.name, **given)
            if policy_id is not None or policy_name is not None:
                cluster = replace(cluster, policy_id=self._find(policy_id, policy_name).id)
            after = self._with_properties(cluster, properties)
            self._state.put_cluster(after)
            self._log_cluster(EventCode.USER_UPDATE_CLUSTER, after, caller)
            return after

    def add_cluster(self, name: str, data_center_id: str, *, caller: Caller = ADMIN) -> Cluster:
        """Add a cluster without hosts; its policy is the default one."""
        with self._backend.lock:
            data_center = existing(self._state.data_centers, data_center_id)
            self._check_name("create", name)
            cluster = Cluster(
                id=self._backend.new_id(),
                name=name,
                ha_reservation=False,
                data_center=data_center_id,
                compatibility=data_center.compatibility,
                policy_id=self._find(None, None).id,
            )
            cluster = self._with_properties(cluster, None)
            self._state.put_cluster(cluster)
            self._log_cluster(EventCode.USER_ADD_CLUSTER, cluster, caller)
            return cluster

    def remove_cluster(self, cluster_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a cluster without hosts and VMs, with its affinity groups and the permissions on it."""
        with self._backend.lock:
            state, cluster = self._state, existing(self._state.clusters, cluster_id)
            inhabited = {host.cluster for host in state.hosts.values()}
            if cluster_id in inhabited | {vm.cluster for vm in state.vms.values()}:
                raise rejections.conflict(
                    "Cannot remove Host Cluster. Cluster contains one or more Hosts or VMs"
                )
            for group in state.groups_of(cluster_id):
                state.drop(state.groups, group.id)
            for permission in tuple(state.permissions.values()):
                if permission.cluster == cluster_id:
                    state.drop(state.permissions, permission.id)
            state.drop(state.clusters, cluster_id)
            self._log_cluster(EventCode.USER_REMOVE_CLUSTER, cluster, caller)

    def _check_name(self, verb: str, name: str) -> None:
        if any(known.name == name for known in self._state.clusters.values()):
            raise rejections.conflict(f"Cannot {verb} Cluster. Cluster name is already in use.")

    def _with_properties(self, cluster: Cluster, given: Mapping[str, str] | None) -> Cluster:
        """Merge properties into those that a cluster and its policy have; what no unit knows is dropped."""
        policy = self._state.policies[cluster.policy_id]
        known = known_properties(policy, self._state.units)
        merged = {**policy.properties, **cluster.scheduling_properties, **(given or {})}
        kept = {name: value for name, value in merged.items() if name in known}
        check_properties(kept, known)
        return replace(cluster, scheduling_properties=kept)

    def add(
        self,
        name: str,
        *,
        description: str = "",
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
    ) -> SchedulingPolicy:
        """Add a policy; it has the mandatory filters only, and no balance."""
        with self._backend.lock:
            policy = SchedulingPolicy(
                id=self._backend.new_id(),
                name=name,
                description=description,
                filters=built_in.mandatory_filters(),
                properties=dict(properties or {}),
            )
            check_policy(policy, self._state)
            self._state.put(self._state.policies, policy)
            self._log(EventCode.USER_ADD_CLUSTER_POLICY, policy, caller)
            return policy

    def edit(
        self,
        policy_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
    ) -> SchedulingPolicy:
        """Change what is not None; properties replace all that were there."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            changed = replace(
                policy,
                name=policy.name if name is None else name,
                description=policy.description if description is None else description,
                properties=policy.properties if properties is None else dict(properties),
            )
            check_policy(changed, self._state)
            self._state.put(self._state.policies, changed)
            self._log(EventCode.USER_UPDATE_CLUSTER_POLICY, changed, caller)
            return changed

    def remove(self, policy_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a policy that is the user's own and assigned to no cluster."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            if policy.locked:
                raise rejections.policy_parameters_invalid()
            users = [c.name for c in self._state.clusters.values() if c.policy_id == policy_id]
            if users:
                raise rejections.bad_parameters(
                    "Cannot remove Scheduling Policy. Attached to the following cluster(s): "
                    + ", ".join(users)
                )
            self._state.drop(self._state.policies, policy_id)
            self._log(EventCode.USER_REMOVE_CLUSTER_POLICY, policy, caller)

    def add_filter(
        self, policy_id: str, unit_id: str, *, position: int = 0, caller: Caller = ADMIN
    ) -> PolicyFilter:
        """Attach a filter. A refused one stays in the engine's memory until it restarts: the engine's bug."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            entry = PolicyFilter(unit=self._unit(unit_id).id, position=position)
            self._change(replace(policy, filters=(*policy.filters, entry)), caller)
            return entry

    def add_weight(
        self, policy_id: str, unit_id: str, *, factor: int = 1, caller: Caller = ADMIN
    ) -> PolicyWeight:
        """Attach a weight; with the same bug as `add_filter`."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            entry = PolicyWeight(unit=self._unit(unit_id).id, factor=factor)
            self._change(replace(policy, weights=(*policy.weights, entry)), caller)
            return entry

    def set_balance(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> PolicyBalance:
        """Put the unit in place of the policy's balance."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            self._change(replace(policy, balance=self._unit(unit_id).id), caller)
            return PolicyBalance(unit=unit_id)

    def remove_unit(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Detach a filter, weight or balance; what the policy has not is no error."""
        with self._backend.lock:
            policy = self._policy(policy_id)
            changed = replace(
                policy,
                filters=tuple(entry for entry in policy.filters if entry.unit != unit_id),
                weights=tuple(entry for entry in policy.weights if entry.unit != unit_id),
                balance=None if policy.balance == unit_id else policy.balance,
            )
            self._change(changed, caller)

    def delete_unit(self, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Forget an external unit that no policy uses."""
        with self._backend.lock:
            unit = existing(self._state.units, unit_id)
            if unit.internal:
                raise rejections.policy_parameters_invalid()
            users = [policy.name for policy in self._state.policies.values() if unit_id in _unit_ids(policy)]
            if users:
                raise rejections.bad_parameters(
                    "Cannot remove Policy Unit. Attached to the following policies: " + ", ".join(users)
                )
            self._state.drop(self._state.units, unit_id)

    def _change(self, policy: SchedulingPolicy, caller: Caller) -> None:
        self._state.put(self._state.policies, policy)
        check_policy(policy, self._state)
        self._log(EventCode.USER_UPDATE_CLUSTER_POLICY, policy, caller)

    def _find(self, policy_id: str | None, name: str | None) -> SchedulingPolicy:
        policies = self._state.policies
        if policy_id in policies:
            return policies[policy_id]
        for policy in policies.values():
            if name is not None and policy.name.lower() == name.lower():
                return policy
        return next(policy for policy in policies.values() if policy.default)

    def _policy(self, policy_id: str) -> SchedulingPolicy:
        return existing(self._state.policies, policy_id)

    def _unit(self, unit_id: str) -> PolicyUnit:
        unit = self._state.units.get(unit_id)
        if unit is None:
            raise rejections.bad_parameters("Cannot update Scheduling Policy. Unknown Policy Unit.")
        return unit

    def _log_cluster(self, code: EventType, cluster: Cluster, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, cluster=cluster, words=words)

    def _log(self, code: EventType, policy: SchedulingPolicy, caller: Caller) -> None:
        self._backend.audit_log.log(code, caller, words={"policy": policy.name})


def _unit_ids(policy: SchedulingPolicy) -> set[str | None]:
    return {*(f.unit for f in policy.filters), *(w.unit for w in policy.weights), policy.balance}
