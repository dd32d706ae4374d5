"""Scheduling policies and units, with the engine's bugs; and the policy and properties of a cluster.

Source: the engine's ClusterPolicyCRUDCommand, SchedulingPolicyMapper, ClusterOperationCommandBase and
CustomPropertiesUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from . import rejections
from .backend import Commands, locked
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
from .events import EventCode
from .rejections import Rejected, existing
from .state import State


def known_properties(policy: SchedulingPolicy, units: Mapping[str, PolicyUnit]) -> dict[str, str]:
    """Give the regular expression of every property that a unit of the policy knows."""
    attached = [*(f.unit for f in policy.filters), *(w.unit for w in policy.weights)]
    if policy.balance is not None:
        attached.append(policy.balance)
    return {name: regex for unit in attached for name, regex in units[unit].properties.items()}


def _illegal_properties(properties: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """Give the names of properties that no unit knows, and of those whose values do not match as a whole."""
    return [
        name
        for name, value in properties.items()
        if name not in known or re.fullmatch(known[name], value) is None
    ]


def check_policy(policy: SchedulingPolicy, state: State, verb: str) -> None:
    """Refuse a policy that the engine does not save. Raises `Rejected`."""

    def refused(reason: str) -> Rejected:
        return rejections.bad_parameters(f"Cannot {verb} Scheduling Policy. {reason}")

    if policy.locked:
        raise refused("Parameters are invalid.")
    if any(other.name == policy.name and other.id != policy.id for other in state.policies.values()):
        raise refused("Name is in use.")
    for kind, ids in (
        (UnitType.FILTER, [entry.unit for entry in policy.filters]),
        (UnitType.WEIGHT, [entry.unit for entry in policy.weights]),
        (UnitType.LOAD_BALANCING, [entry.unit for entry in policy.balances]),
    ):
        if any(state.units[unit_id].type is not kind for unit_id in ids):
            raise refused(f"A unit is not of type {kind}.")
        if len(set(ids)) < len(ids):
            raise refused("A unit is attached more than once.")
    positions = [entry.position for entry in policy.filters]
    if positions.count(-1) > 1 or positions.count(1) > 1:
        raise refused("Only one filter can be first, and only one last.")
    if any(entry.factor < 0 for entry in policy.weights):
        raise refused("Function factor cannot be negative.")
    if _illegal_properties(policy.properties, known_properties(policy, state.units)):
        raise refused("Parameters are invalid.")


class PolicyCommands(Commands):
    """Commands on scheduling policies; all raise `Rejected` with HTTP 400, or `NotFound`.

    The engine changes the policy in its memory first and validates it then. So a unit that it refuses stays
    there, and spoils every later change of that policy, until it restarts.
    """

    @locked
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
        before = existing(self._state.clusters, cluster_id)
        if name is not None and name != before.name:
            self._check_name("edit", name)
        given = {key: value for key, value in changes.items() if value is not None}
        cluster = replace(before, name=name or before.name, **given)
        if policy_id is not None or policy_name is not None:
            cluster = replace(cluster, policy_id=self._find(policy_id, policy_name).id)
        after = self._with_properties(cluster, properties)
        self._state.put_cluster(after)
        self._log(EventCode.USER_UPDATE_CLUSTER, caller, cluster=after)
        return after

    @locked
    def add_cluster(self, name: str, data_center_id: str, *, caller: Caller = ADMIN) -> Cluster:
        """Add a cluster without hosts; its policy is the default one."""
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
        self._log(EventCode.USER_ADD_CLUSTER, caller, cluster=cluster)
        return cluster

    @locked
    def remove_cluster(self, cluster_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a cluster without hosts and VMs, with its affinity groups and the permissions on it."""
        state, cluster = self._state, existing(self._state.clusters, cluster_id)
        inhabited = {host.cluster for host in state.hosts.values()}
        if cluster_id in inhabited | {vm.cluster for vm in state.vms.values()}:
            raise rejections.conflict("Cannot remove Host Cluster. Cluster contains one or more Hosts or VMs")
        for group in state.groups_of(cluster_id):
            state.drop(state.groups, group.id)
        for permission in tuple(state.permissions.values()):
            if permission.cluster == cluster_id:
                state.drop(state.permissions, permission.id)
        state.drop(state.clusters, cluster_id)
        self._log(EventCode.USER_REMOVE_CLUSTER, caller, cluster=cluster)

    def _check_name(self, verb: str, name: str) -> None:
        if any(known.name == name for known in self._state.clusters.values()):
            raise rejections.conflict(f"Cannot {verb} Cluster. Cluster name is already in use.")

    def _with_properties(self, cluster: Cluster, given: Mapping[str, str] | None) -> Cluster:
        """Merge properties into those that a cluster and its policy have; what no unit knows is dropped."""
        policy = self._state.policies[cluster.policy_id]
        known = known_properties(policy, self._state.units)
        merged = {**policy.properties, **cluster.scheduling_properties, **(given or {})}
        kept = {name: value for name, value in merged.items() if name in known}
        if illegal := _illegal_properties(kept, known):
            raise rejections.bad_parameters(
                "Cannot edit Cluster if some of the specified custom properties have illegal values."
                f" The keys are: {', '.join(illegal)}"
            )
        return replace(cluster, scheduling_properties=kept)

    @locked
    def add(
        self,
        name: str,
        *,
        description: str = "",
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
    ) -> SchedulingPolicy:
        """Add a policy; it has no units."""
        policy = SchedulingPolicy(
            id=self._backend.new_id(),
            name=name,
            description=description,
            properties=dict(properties or {}),
        )
        check_policy(policy, self._state, "add")
        self._state.put(self._state.policies, policy)
        self._log(EventCode.USER_ADD_CLUSTER_POLICY, caller, policy=policy.name)
        return policy

    @locked
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
        policy = self._policy(policy_id)
        changed = replace(
            policy,
            name=policy.name if name is None else name,
            description=policy.description if description is None else description,
            properties=policy.properties if properties is None else dict(properties),
        )
        self._change(changed, caller)
        return changed

    @locked
    def remove(self, policy_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a policy that is the user's own and assigned to no cluster."""
        policy = self._policy(policy_id)
        if policy.locked:
            raise rejections.bad_parameters("Cannot remove Scheduling Policy. Parameters are invalid.")
        users = [c.name for c in self._state.clusters.values() if c.policy_id == policy_id]
        if users:
            raise rejections.bad_parameters(
                "Cannot remove Scheduling Policy. Scheduling Policy is attached to cluster(s):"
                f" {', '.join(users)}, please unassign cluster(s)."
            )
        self._state.drop(self._state.policies, policy_id)
        self._log(EventCode.USER_REMOVE_CLUSTER_POLICY, caller, policy=policy.name)

    @locked
    def add_filter(
        self, policy_id: str, unit_id: str, *, position: int = 0, caller: Caller = ADMIN
    ) -> PolicyFilter:
        """Attach a filter. A refused one stays in the engine's memory until it restarts: the engine's bug."""
        policy = self._policy(policy_id)
        entry = PolicyFilter(unit=self._unit(unit_id).id, position=position)
        self._change(replace(policy, filters=(*policy.filters, entry)), caller)
        return entry

    @locked
    def add_weight(
        self, policy_id: str, unit_id: str, *, factor: int = 1, caller: Caller = ADMIN
    ) -> PolicyWeight:
        """Attach a weight; with the same bug as `add_filter`."""
        policy = self._policy(policy_id)
        entry = PolicyWeight(unit=self._unit(unit_id).id, factor=factor)
        self._change(replace(policy, weights=(*policy.weights, entry)), caller)
        return entry

    @locked
    def set_balance(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> PolicyBalance:
        """Put the unit in place of the policy's balance."""
        policy = self._policy(policy_id)
        self._change(replace(policy, balance=self._unit(unit_id).id), caller)
        return PolicyBalance(unit=unit_id)

    @locked
    def remove_unit(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Detach a filter, weight or balance; what the policy has not is no error."""
        policy = self._policy(policy_id)
        changed = replace(
            policy,
            filters=tuple(entry for entry in policy.filters if entry.unit != unit_id),
            weights=tuple(entry for entry in policy.weights if entry.unit != unit_id),
            balance=None if policy.balance == unit_id else policy.balance,
        )
        self._change(changed, caller)

    @locked
    def delete_unit(self, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Forget an external unit that no policy uses."""
        unit = existing(self._state.units, unit_id)
        if unit.internal:
            raise rejections.bad_parameters("Cannot remove Scheduling Policy. Parameters are invalid.")
        users = [policy.name for policy in self._state.policies.values() if unit_id in _unit_ids(policy)]
        if users:
            raise rejections.bad_parameters(
                "Cannot remove Policy Unit. Attached to the following policies: " + ", ".join(users)
            )
        self._state.drop(self._state.units, unit_id)

    def _change(self, policy: SchedulingPolicy, caller: Caller) -> None:
        self._state.put(self._state.policies, policy)
        check_policy(policy, self._state, "edit")
        self._log(EventCode.USER_UPDATE_CLUSTER_POLICY, caller, policy=policy.name)

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
            raise rejections.bad_parameters("Cannot edit Scheduling Policy. Unknown Policy Unit.")
        return unit


def _unit_ids(policy: SchedulingPolicy) -> set[str | None]:
    return {*(f.unit for f in policy.filters), *(w.unit for w in policy.weights), policy.balance}
