"""Clusters with the mark of an upgrade, and their scheduling policies and units, with the engine's bugs.

Source: the engine's ClusterPolicyCRUDCommand, SchedulingPolicyMapper, ClusterOperationCommandBase,
CustomPropertiesUtils, and its commands that start, update and finish the upgrade of a cluster.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ovirt_simulator.core import messages
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.entities import (
    ADMIN,
    Caller,
    Cluster,
    Job,
    PolicyEntry,
    PolicyUnit,
    SchedulingPolicy,
    UnitType,
)
from ovirt_simulator.core.messages import EventCode, EventType, existing
from ovirt_simulator.core.state import State


def known_properties(policy: SchedulingPolicy, units: Mapping[str, PolicyUnit]) -> dict[str, str]:
    """Give the regular expression of every property that a unit of the policy knows."""
    attached = (*policy.filters, *policy.weights, *policy.balances)
    return {name: regex for one in attached for name, regex in units[one.unit].properties.items()}


def _illegal_properties(properties: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    return [n for n, value in properties.items() if n not in known or not re.fullmatch(known[n], value)]


def _faults(policy: SchedulingPolicy, state: State) -> Iterator[str]:
    if policy.locked:
        yield "Parameters are invalid."
    if any(other.name == policy.name and other.id != policy.id for other in state.policies.values()):
        yield "Name is in use."
    for kind, entries in (
        (UnitType.FILTER, policy.filters),
        (UnitType.WEIGHT, policy.weights),
        (UnitType.LOAD_BALANCING, policy.balances),
    ):
        ids = [entry.unit for entry in entries]
        if any(state.units[unit_id].type is not kind for unit_id in ids):
            yield f"A unit is not of type {kind}."
        if len(set(ids)) < len(ids):
            yield "A unit is attached more than once."
    positions = [entry.position for entry in policy.filters]
    if positions.count(-1) > 1 or positions.count(1) > 1:
        yield "Only one filter can be first, and only one last."
    if any(entry.factor < 0 for entry in policy.weights):
        yield "Function factor cannot be negative."
    if _illegal_properties(policy.properties, known_properties(policy, state.units)):
        yield "Parameters are invalid."


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
        policy_id: str | None = None,
        policy_name: str | None = None,
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
        **changes: Any,
    ) -> Cluster:
        """Assign a policy (if unknown, the default), and merge properties into the present ones.

        Properties that no unit of the policy knows are dropped; the others must match their expression.
        `changes` are fields of the cluster.
        """
        before = existing(self._state.clusters, cluster_id)
        cluster = replace(before, **changes)
        if cluster.name != before.name:
            self._check_name("edit", cluster.name)
        if policy_id is not None or policy_name is not None:
            cluster = replace(cluster, policy_id=self._find_policy(policy_id, policy_name).id)
        return self._put_cluster(cluster, properties, caller, EventCode.USER_UPDATE_CLUSTER)

    @locked
    def add_cluster(self, name: str, data_center_id: str, *, caller: Caller = ADMIN) -> Cluster:
        """Add a cluster without hosts; its policy is the default one."""
        existing(self._state.data_centers, data_center_id)
        self._check_name("create", name)
        cluster = Cluster(
            id=self._backend.new_id(),
            name=name,
            ha_reservation=False,
            data_center=data_center_id,
            policy_id=self._find_policy(None, None).id,
        )
        return self._put_cluster(cluster, None, caller, EventCode.USER_ADD_CLUSTER)

    @locked
    def remove_cluster(self, cluster_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a cluster without hosts and VMs, with its affinity groups and the permissions on it."""
        state, cluster = self._state, existing(self._state.clusters, cluster_id)
        inhabited = {host.cluster for host in state.hosts.values()}
        if cluster_id in inhabited | {vm.cluster for vm in state.vms.values()}:
            raise messages.conflict("Cannot remove Host Cluster. Cluster contains one or more Hosts or VMs")
        for group in state.groups_of(cluster_id):
            state.drop(state.groups, group.id)
        for permission in tuple(state.permissions.values()):
            if permission.cluster == cluster_id:
                state.drop(state.permissions, permission.id)
        state.drop(state.clusters, cluster_id)
        self._log(EventCode.USER_REMOVE_CLUSTER, caller, cluster=cluster)

    def _check_name(self, verb: str, name: str) -> None:
        if any(known.name == name for known in self._state.clusters.values()):
            raise messages.conflict(f"Cannot {verb} Cluster. Cluster name is already in use.")

    def _put_cluster(
        self, cluster: Cluster, given: Mapping[str, str] | None, caller: Caller, code: EventType
    ) -> Cluster:
        """Merge properties into those that a cluster and its policy have; what no unit knows is dropped."""
        policy = self._state.policies[cluster.policy_id]
        known = known_properties(policy, self._state.units)
        merged = {**policy.properties, **cluster.scheduling_properties, **(given or {})}
        kept = {name: value for name, value in merged.items() if name in known}
        if illegal := _illegal_properties(kept, known):
            raise messages.bad_parameters(
                "Cannot edit Cluster if some of the specified custom properties have illegal values."
                f" The keys are: {', '.join(illegal)}"
            )
        cluster = replace(cluster, scheduling_properties=kept)
        self._state.put_cluster(cluster)
        self._log(code, caller, cluster=cluster)
        return cluster

    @locked
    def add(self, name: str, *, caller: Caller = ADMIN, **fields: Any) -> SchedulingPolicy:
        """Add a policy with a description and properties, if they are named; it has no units."""
        policy = SchedulingPolicy(id=self._backend.new_id(), name=name, **fields)
        self._check(policy, "add")
        self._state.put(self._state.policies, policy)
        self._log(EventCode.USER_ADD_CLUSTER_POLICY, caller, policy=policy.name)
        return policy

    @locked
    def remove(self, policy_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a policy that is the user's own and assigned to no cluster."""
        policy = existing(self._state.policies, policy_id)
        if policy.locked:
            raise messages.bad_parameters("Cannot remove Scheduling Policy. Parameters are invalid.")
        if users := [c.name for c in self._state.clusters.values() if c.policy_id == policy_id]:
            raise messages.bad_parameters(
                "Cannot remove Scheduling Policy. Scheduling Policy is attached to cluster(s):"
                f" {', '.join(users)}, please unassign cluster(s)."
            )
        self._state.drop(self._state.policies, policy_id)
        self._log(EventCode.USER_REMOVE_CLUSTER_POLICY, caller, policy=policy.name)

    @locked
    def attach(
        self, kind: str, policy_id: str, unit_id: str, *, caller: Caller = ADMIN, **numbers: int
    ) -> PolicyEntry:
        """Attach one of the `filters` or `weights`, or put a unit in place of the `balances`.

        A refused one stays in the engine's memory until it restarts: the engine's bug.
        """
        policy = existing(self._state.policies, policy_id)
        if unit_id not in self._state.units:
            raise messages.bad_parameters("Cannot edit Scheduling Policy. Unknown Policy Unit.")
        entry = PolicyEntry(unit=unit_id, **numbers)
        whole = {kind: (*getattr(policy, kind), entry)}
        self.edit(policy_id, caller=caller, **({"balance": unit_id} if kind == "balances" else whole))
        return entry

    @locked
    def remove_unit(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Detach a filter, weight or balance; what the policy has not is no error."""
        policy = existing(self._state.policies, policy_id)
        self.edit(
            policy_id,
            caller=caller,
            filters=tuple(entry for entry in policy.filters if entry.unit != unit_id),
            weights=tuple(entry for entry in policy.weights if entry.unit != unit_id),
            balance=None if policy.balance == unit_id else policy.balance,
        )

    @locked
    def edit(self, policy_id: str, *, caller: Caller = ADMIN, **changes: Any) -> SchedulingPolicy:
        """Change name, description, properties or units, all of which replace what was there."""
        policy = replace(existing(self._state.policies, policy_id), **changes)
        self._state.put(self._state.policies, policy)
        self._check(policy, "edit")
        self._log(EventCode.USER_UPDATE_CLUSTER_POLICY, caller, policy=policy.name)
        return policy

    def _check(self, policy: SchedulingPolicy, verb: str) -> None:
        for fault in _faults(policy, self._state):
            raise messages.bad_parameters(f"Cannot {verb} Scheduling Policy. {fault}")

    def _find_policy(self, policy_id: str | None, name: str | None) -> SchedulingPolicy:
        policies = self._state.policies
        if policy_id in policies:
            return policies[policy_id]
        named = (one for one in policies.values() if name is not None and one.name.lower() == name.lower())
        return next(named, None) or next(policy for policy in policies.values() if policy.default)


class UpgradeCommands(Commands):
    """Commands on clusters; all raise `NotFound`, and `progress` also `Rejected`."""

    @locked
    def start(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Mark the cluster, unless it is marked already."""
        cluster = existing(self._state.clusters, cluster_id)
        if cluster.upgrade_mode:
            self._log(EventCode.USER_START_CLUSTER_UPGRADE_FAILED, caller, cluster=cluster)
            raise messages.bad_parameters(f"Failed to set upgrade running flag on cluster '{cluster_id}'.")
        cluster = replace(cluster, upgrade_correlation_id=caller.correlation_id)
        code = EventCode.USER_START_CLUSTER_UPGRADE
        return self._change(cluster, code, caller, upgrade_mode=True, upgrade_percent=0)

    @locked
    def progress(self, cluster_id: str, percent: int, *, caller: Caller = ADMIN) -> Job:
        """Say how far it is; only who began it may, by the correlation id."""
        cluster = existing(self._state.clusters, cluster_id)
        if not cluster.upgrade_mode:
            raise messages.bad_parameters("Cannot update progress, cluster upgrade has not been started.")
        if not 0 <= percent <= 100:
            allowed = "the value needs to be in the range of 0 to 100."
            raise messages.bad_parameters(f"Cannot update upgrade percent complete, {allowed}")
        if caller.correlation_id != cluster.upgrade_correlation_id:
            reason = "given correlation id does not match the current update correlation id."
            raise messages.bad_parameters(f"Cannot update progress, {reason}")
        code = EventCode.USER_UPDATE_CLUSTER_UPGRADE
        return self._change(cluster, code, caller, upgrade_percent=percent)

    @locked
    def finish(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Take the mark away, also one that another made; whose it was stays."""
        cluster, code = existing(self._state.clusters, cluster_id), EventCode.USER_FINISH_CLUSTER_UPGRADE
        return self._change(cluster, code, caller, upgrade_mode=False, upgrade_percent=0)

    def _change(self, cluster: Cluster, code: EventType, caller: Caller, **changes: Any) -> Job:
        self._state.put(self._state.clusters, replace(cluster, **changes))
        self._log(code, caller, cluster=cluster)
        return self._jobs.note(f"Upgrading Cluster {cluster.name}", caller)
