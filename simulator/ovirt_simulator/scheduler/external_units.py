"""The external units of a cluster's policy: discovered once, called as the engine calls them.

Source: the engine's ExternalSchedulerDiscovery, ExternalSchedulerDiscoveryResult and SchedulingManager
(loadExternalScheduler, runExternalFilters, runExternalFunctions).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import Host

from ..core.backend import Backend
from ..core.entities import SYSTEM, Cluster, PolicyUnit, SchedulingPolicy, UnitType, stable_id
from ..core.event_codes import EventCode
from .external import BalanceReply, Complaint, ExternalScheduler, Unreachable
from .rank_selector import Record
from .request import Request

_KINDS = {"filters": UnitType.FILTER, "scores": UnitType.WEIGHT, "balance": UnitType.LOAD_BALANCING}
_PROPERTY = re.compile(r"[a-z_A-Z0-9]+=[^;]+")


class ExternalUnits:
    """Asks the external scheduler, if there is one. Never called with the engine's lock held."""

    def __init__(self, backend: Backend, external: ExternalScheduler | None) -> None:
        self._backend = backend
        self._external = external

    def discover(self) -> None:
        """Learn the units once; those that are not named, or all when the answer is no good, are disabled."""
        if self._external is None:
            return
        try:
            found = _units(self._external.discover())
        except (Unreachable, ValueError):
            found = {}
            self._log_unreachable()
        with self._backend.lock:
            state = self._backend.state
            known = {unit.id: unit for unit in state.units.values() if not unit.internal}
            for unit in (known | found).values():
                state.put(state.units, replace(unit, enabled=unit.id in found))

    def filter(self, request: Request, cluster: Cluster, hosts: tuple[Host, ...]) -> tuple[Host, ...]:
        """Give the hosts that the policy's external filters leave; all of them when nobody answers.

        Raises `Malformed` for an answer that the engine fails on.
        """
        policy = self._policy(cluster)
        names = [
            unit.name
            for entry in sorted(policy.filters, key=lambda entry: entry.position)
            if (unit := self._enabled(entry.unit))
        ]
        if self._external is None or not names:
            return hosts
        for vm_id in request.vm_ids:
            if not hosts:
                break
            ids = [host.id for host in hosts]
            try:
                reply = self._external.run_filters(names, ids, vm_id, cluster.scheduling_properties)
            except Unreachable:
                self._log_unreachable()
                return hosts
            self._log_complaints(reply.complaints)
            hosts = tuple(host for host in hosts if host.id in reply.hosts)
        return hosts

    def weigh(self, request: Request, cluster: Cluster, hosts: Sequence[Host]) -> list[Record]:
        """Give the external weights by unit id, VM for VM; none when nobody answers.

        Weights that name no unit of the policy stand under None. Raises `Malformed` as `filter` does.
        """
        units = {
            unit.name: (entry.unit, entry.factor)
            for entry in self._policy(cluster).weights
            if (unit := self._enabled(entry.unit))
        }
        records: list[Record] = []
        if self._external is None or not units:
            return records
        factors = [(name, factor) for name, (_, factor) in units.items()]
        ids = [host.id for host in hosts]
        for vm_id in request.vm_ids:
            try:
                reply = self._external.run_cost_functions(factors, ids, vm_id, cluster.scheduling_properties)
            except Unreachable:
                self._log_unreachable()
                return []
            self._log_complaints(reply.complaints)
            for record in reply.records:
                known = units.get(record.unit) if record.unit is not None else None
                records.append(record._replace(unit=None if known is None else known[0]))
        return records

    def balance(self, cluster: Cluster, unit: PolicyUnit, hosts: Sequence[Host]) -> BalanceReply:
        """Ask an external balance for a VM to move; nothing when nobody answers."""
        if self._external is None or not unit.enabled:
            return BalanceReply(None)
        try:
            reply = self._external.run_load_balancing(
                unit.name, [host.id for host in hosts], cluster.scheduling_properties
            )
        except Unreachable:
            self._log_unreachable()
            return BalanceReply(None)
        self._log_complaints(reply.complaints)
        return reply

    def _policy(self, cluster: Cluster) -> SchedulingPolicy:
        with self._backend.lock:
            return self._backend.state.policies[cluster.policy_id]

    def _enabled(self, unit_id: str) -> PolicyUnit | None:
        with self._backend.lock:
            unit = self._backend.state.units[unit_id]
        return unit if unit.enabled and not unit.internal else None

    def _log_unreachable(self) -> None:
        with self._backend.lock:
            self._backend.audit_log.log(EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY, SYSTEM)

    def _log_complaints(self, complaints: Sequence[Complaint]) -> None:
        log = self._backend.audit_log.log
        with self._backend.lock:
            for complaint in complaints:
                if complaint.plugin is None:
                    log(EventCode.EXTERNAL_SCHEDULER_ERROR, SYSTEM, words={"error": complaint.error})
                else:
                    log(
                        EventCode.EXTERNAL_SCHEDULER_PLUGIN_ERROR,
                        SYSTEM,
                        words={"plugin": complaint.plugin, "error": complaint.error},
                    )


def _units(answer: Any) -> dict[str, PolicyUnit]:
    """Read the answer of `discover`; raises ValueError for one that fails the whole discovery.

    A unit whose properties have errors is left out alone.
    """
    if not isinstance(answer, dict) or not set(answer) <= set(_KINDS):
        raise ValueError("discover answers filters, scores and balance")
    found = {}
    for key, units in answer.items():
        if not isinstance(units, dict):
            raise ValueError(f"{key} is no map")
        for name, description in units.items():
            unit = _unit(_KINDS[key], name, description)
            if unit is not None:
                found[unit.id] = unit
    return found


def _unit(kind: UnitType, name: str, description: Any) -> PolicyUnit | None:
    if not isinstance(description, list) or None in description:
        raise ValueError(f"unit {name} has no [description, properties]")
    text, syntax = ([str(part) for part in description] + ["", ""])[:2]
    properties = [part.strip() for part in syntax.split(";") if part.strip()]
    if not all(_PROPERTY.fullmatch(part) for part in properties):
        return None
    return PolicyUnit(
        id=stable_id(kind, name),
        name=name,
        type=kind,
        internal=False,
        description=text,
        properties=dict(part.split("=", 1) for part in properties),
    )
