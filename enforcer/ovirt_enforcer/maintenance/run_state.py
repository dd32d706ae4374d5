"""What the engine shows of a run: VMs on their way, those that go home, and the flag of an upgrade."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.gates.people import rule_key
from ovirt_placement.engine.actions import finish_upgrade, read_upgrade, show_progress, start_upgrade
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.requests import Moved
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from ovirt_placement.store.enforcer.maintenance import (
    ENDED,
    UPGRADE_OF_RUN,
    HostPhase,
    MaintenanceRun,
    RunState,
    Work,
    upgrade_id,
)
from ovirt_service.errors import UserError


def arriving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs on their way to a host, with their names."""
    coming = {one.vm for one in snapshot.pending if one.host == host}
    return _names(snapshot, coming.union(one.vm for one in open_intents if one.target == host))


def leaving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs that may be back, as long as it is not known that they have arrived."""
    return _names(snapshot, (one.vm for one in open_intents if one.source == host))


def down(snapshot: Snapshot, stopped: Sequence[str]) -> dict[str, str]:
    """Those of these VMs that are down, with their names."""
    names = _names(snapshot, stopped)
    return {vm: name for vm, name in names.items() if snapshot.vm_by_id[vm].status == "down"}


def _names(snapshot: Snapshot, vms: Iterable[str]) -> dict[str, str]:
    return {vm: snapshot.vm_by_id[vm].name for vm in vms if vm in snapshot.vm_by_id}


def lost(run: MaintenanceRun, snapshot: Snapshot) -> tuple[str, ...]:
    """The names of hosts of a run that are done, and not up."""
    done = [host for host in run.hosts if host.phase is HostPhase.DONE]
    up = {host.id for host in snapshot.hosts if host.up}
    return tuple(host.name for host in done if host.host in snapshot.host_by_id and host.host not in up)


#: A VM whose way back has failed this many times stays.
_MOST_FAILURES: Final = 3
_FAILED: Final = f"its migration back has failed {_MOST_FAILURES} times"
#: This many VMs that are not back are named.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class WayHome:
    """The VMs of a run that are to go back now."""

    run: str
    moved: tuple[Moved, ...]
    #: Those of them that stay all the same, with the reason.
    given_up: Mapping[str, str]


def brings_back(run: MaintenanceRun) -> bool:
    """Whether all its hosts are done with, and VMs are to go back."""
    return run.request.back is not Return.NONE and all(host.phase in ENDED for host in run.hosts)


def way_home(run: MaintenanceRun, snapshot: Snapshot, migrations: Sequence[Intent]) -> WayHome | None:
    """What a run asks for now; None if nothing, or not now. `migrations` have ended since it began.

    A VM goes back once: what takes it away afterwards, a repair or a person, has a reason of its own.
    """
    if run.state is not RunState.RUNNING or not brings_back(run):
        return None
    wanted = None
    if run.request.back is Return.RULED:  # VMs of rules that are violated, and were not when the run began
        found = (one for one in find_violations(snapshot, run.cluster) if rule_key(one) not in run.violated)
        wanted = {vm for one in found for vm in one.constraint.vms}
    ours = tuple(one for one in migrations if one.cluster == run.cluster)
    moved = tuple(one for one in _moved(run, snapshot, ours) if wanted is None or one.vm in wanted)
    failed = Counter((one.vm, one.target) for one in ours if one.state is IntentState.FAILED)
    given_up = (one.vm for one in moved if failed[one.vm, one.source] >= _MOST_FAILURES)
    return WayHome(run.id, moved, dict.fromkeys(given_up, _FAILED))


def _moved(run: MaintenanceRun, snapshot: Snapshot, migrations: Sequence[Intent]) -> Iterator[Moved]:
    last = {one.vm: one.target for one in migrations if one.state is IntentState.DONE}
    arrived = {(one.vm, one.target) for one in migrations if one.state is IntentState.DONE}
    homes: dict[str, str] = {}  # the first host of the run that a VM was taken off
    for host in run.hosts:
        for vm in host.vms:
            homes.setdefault(vm, host.host)
    for vm, home in homes.items():
        known = snapshot.vm_by_id.get(vm)
        if known is None or known.host is None or known.hosted_engine or known.host == home:
            continue
        if (vm, home) not in arrived:
            yield Moved(vm, home, last.get(vm, known.host))


def not_back(snapshot: Snapshot, kept: Mapping[str, str]) -> str:
    """Which VMs stay where they went, and why."""
    named = [f"{vm_name(vm, snapshot)} ({why})" for vm, why in list(kept.items())[:_NAMED]]
    if more := len(kept) - len(named):
        named.append(f"and {more} more")
    return f"; not back on their hosts: {', '.join(named)}" if kept else ""


#: How often what failed is tried again, in looks at the engine.
_LOOKS_BETWEEN: Final = 30

_log = logging.getLogger(__name__)


class UpgradeFlags:
    """The flags of all runs; for one thread."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        #: What was shown last of each run, in percent.
        self._shown: dict[str, int] = {}
        #: For how many looks nothing is tried of a run, or of a flag that stays.
        self._rests: dict[str, int] = {}

    def show(self, run: MaintenanceRun) -> None:
        """Have the engine show how far a run is, unless an upgrade by others is under way."""
        if run.request.work is Work.NOTHING or run.state is RunState.STOPPING:
            return
        percent = 100 * sum(host.phase in ENDED for host in run.hosts) // max(1, len(run.hosts))
        if self._shown.get(run.id) == percent or self._is_resting(run.id):
            return
        try:
            shown = self._show_upgrade(run.cluster, upgrade_id(run.id), percent)
        except EngineAway:
            return
        except UserError as error:
            self._failed(run.id, f"maintenance run {run.id}: is not shown as an upgrade: {error}")
        else:
            if shown:
                self._shown[run.id] = percent

    def finish(self, cluster: str, run: str) -> None:
        """Take the flag of a run away, if it is still its own."""
        self._shown.pop(run, None)
        if self._is_resting(run):
            return
        try:
            state = read_upgrade(self._connection, cluster)
            if state.running and state.correlation_id == upgrade_id(run):
                finish_upgrade(self._connection, cluster, upgrade_id(run))
        except EngineAway:
            return
        except UserError as error:
            self._failed(run, f"maintenance run {run}: has ended and is still shown as an upgrade: {error}")

    def _show_upgrade(self, cluster: str, correlation_id: str, percent: int) -> bool:
        """Begin it where none is under way, as after a restart of the engine, which forgets them all.

        False while an upgrade by others is under way. An engine that does not say whose an upgrade is
        is shown none: it could not be distinguished from those of others.
        """
        state = read_upgrade(self._connection, cluster)
        if not state.attributed:
            return True
        if state.running and state.correlation_id != correlation_id:
            return False
        if not state.running:
            start_upgrade(self._connection, cluster, correlation_id)
        if percent:
            show_progress(self._connection, cluster, correlation_id, percent)
        return True

    def _failed(self, run: str, message: str) -> None:
        _log.warning("%s", message)
        self._rests[run] = _LOOKS_BETWEEN

    def _is_resting(self, run: str) -> bool:
        left = self._rests.pop(run, 0)
        if left > 1:
            self._rests[run] = left - 1
        return left > 0


def flags_without_run(snapshot: Snapshot, runs: Iterable[MaintenanceRun]) -> list[tuple[str, str]]:
    """Clusters with the flag of a run that is none of these, with the id that it bears."""
    under_way = {run.id for run in runs}
    return [
        (cluster.id, run)
        for cluster in snapshot.clusters
        if cluster.upgrade_mode
        and (flag := cluster.upgrade_correlation_id or "").startswith(UPGRADE_OF_RUN)
        and (run := flag.removeprefix(UPGRADE_OF_RUN)) not in under_way
    ]
