"""Hosts whose CPUs are too busy: since when the engine knows it, and its filter that refuses them.

Source: the engine's SchedulingManager (updateHostSchedulingStats), CpuOverloadPolicyUnit and
HostCpuLoadHelper. No host reports here what each of its CPUs does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from ovirt_placement.model import Host, Snapshot, Vm

from ..core.backend import Backend
from ..core.state import State
from .internal_filter import Filter, InternalFilter, Refusals
from .peers import cpus

#: The engine's HighUtilizationForEvenlyDistribute and LowUtilizationForEvenlyDistribute: from the one, and up
#: to the other, it notes a time; its HighUtilizationForScheduling: above it, it refuses.
_BUSY_PERCENT, _IDLE_PERCENT, _TOO_BUSY_PERCENT = 75, 0, 90
#: Its CpuOverCommitDurationMinutes.
_MINUTES = 2
#: Percent of a CPU that managing storage needs.
_SPM_PERCENT = 10


class HostLoad:
    """Looks at the statistics of all hosts, as the engine does whenever it has new ones."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def cycle(self) -> None:
        """Note since when hosts are busy, or idle; one that is neither any more has no time."""
        with self._backend.lock:
            state, now = self._backend.state, self._backend.now
            for host in tuple(state.hosts.values()):
                if not host.up or host.cpu_percent is None:
                    continue
                since = (host.overloaded_since or now) if _is_noted(state, host) else None
                if since != host.overloaded_since:
                    state.put(state.hosts, replace(host, overloaded_since=since))


def _is_noted(state: State, host: Host) -> bool:
    properties = state.clusters[host.cluster].scheduling_properties
    load = _load(host, host.cores)
    busy = _number(properties, "HighUtilization", _BUSY_PERCENT)
    return load >= busy or load <= _number(properties, "LowUtilization", _IDLE_PERCENT)


def cpu_overloaded(state: State, now: datetime) -> InternalFilter:
    """Give the filter that refuses hosts which are too busy, for as long as the policy says by now."""
    return InternalFilter("CPUOverloaded", _refusing(state, now))


def _refusing(state: State, now: datetime) -> Filter:
    def refuse(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
        refusals = {}
        for host in hosts:
            if host.measured and host.cpu_percent is None:
                refusals[host.id] = ""
            elif _is_too_busy(snapshot, host, state.hosts[host.id].overloaded_since, now):
                refusals[host.id] = "its CPU is too loaded"
        return refusals

    return refuse


def _is_too_busy(snapshot: Snapshot, host: Host, since: datetime | None, now: datetime) -> bool:
    """Notify it of a host by its present load, if that is known."""
    properties = snapshot.cluster_by_id[host.cluster].scheduling_properties
    lasting = timedelta(minutes=_number(properties, "CpuOverCommitDurationMinutes", _MINUTES))
    most = _number(properties, "HighUtilization", _TOO_BUSY_PERCENT)
    return _load(host, cpus(host, snapshot)) > most and since is not None and now - since >= lasting


def _load(host: Host, shared_by: int) -> int:
    """Give what is in use, in percent of this many CPUs, rounded up."""
    if shared_by == 0:
        return 0
    return -(-(int(host.cpu_percent or 0) * shared_by + _SPM_PERCENT * host.spm) // shared_by)


def _number(properties: Mapping[str, str], name: str, usual: int) -> int:
    try:
        return int(properties.get(name, usual))
    except ValueError:
        return usual
