"""VMs of a maintenance run: those that a step waits for, and those that it brings back in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.gates.people import rule_key
from ovirt_placement.model import Snapshot
from ovirt_placement.model.maintenance import Return
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.undoing import Moved
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_placement.store.maintenance_run import ENDED, HostPhase, MaintenanceRun, RunState


def arriving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs on their way to a host, with their names."""
    coming = {one.vm for one in snapshot.pending if one.host == host}
    coming.update(intent.vm for intent in open_intents if intent.target == host)
    return {vm: snapshot.vm_by_id[vm].name for vm in coming if vm in snapshot.vm_by_id}


def leaving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs that may be back, as long as it is not known that they have arrived."""
    going = (intent.vm for intent in open_intents if intent.source == host)
    return {vm: snapshot.vm_by_id[vm].name for vm in going if vm in snapshot.vm_by_id}


def down(snapshot: Snapshot, stopped: Sequence[str]) -> dict[str, str]:
    """Those of these VMs that are down, with their names."""
    known = (snapshot.vm_by_id[vm] for vm in stopped if vm in snapshot.vm_by_id)
    return {vm.id: vm.name for vm in known if vm.status == "down"}


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
    wanted = _ruled(run, snapshot) if run.request.back is Return.RULED else None
    ours = tuple(one for one in migrations if one.cluster == run.cluster)
    moved = tuple(one for one in _moved(run, snapshot, ours) if wanted is None or one.vm in wanted)
    failed = Counter((one.vm, one.target) for one in ours if one.state is IntentState.FAILED)
    given_up = (one.vm for one in moved if failed[one.vm, one.source] >= _MOST_FAILURES)
    return WayHome(run.id, moved, dict.fromkeys(given_up, _FAILED))


def _moved(run: MaintenanceRun, snapshot: Snapshot, migrations: Sequence[Intent]) -> Iterator[Moved]:
    last = {one.vm: one.target for one in migrations if one.state is IntentState.DONE}
    arrived = {(one.vm, one.target) for one in migrations if one.state is IntentState.DONE}
    for vm, home in _homes(run).items():
        known = snapshot.vm_by_id.get(vm)
        if known is None or known.host is None or known.hosted_engine or known.host == home:
            continue
        if (vm, home) not in arrived:
            yield Moved(vm, home, last.get(vm, known.host))


def _homes(run: MaintenanceRun) -> Mapping[str, str]:
    """By VM the first host of the run that it was taken off."""
    homes: dict[str, str] = {}
    for host in run.hosts:
        for vm in host.vms:
            homes.setdefault(vm, host.host)
    return homes


def _ruled(run: MaintenanceRun, snapshot: Snapshot) -> frozenset[str]:
    """VMs of rules that are violated, and were not when the run began."""
    found = find_violations(snapshot, run.cluster)
    return frozenset(vm for one in found if rule_key(one) not in run.violated for vm in one.constraint.vms)


def not_back(snapshot: Snapshot, kept: Mapping[str, str]) -> str:
    """Which VMs stay where they went, and why."""
    named = [f"{vm_name(vm, snapshot)} ({why})" for vm, why in list(kept.items())[:_NAMED]]
    if more := len(kept) - len(named):
        named.append(f"and {more} more")
    return f"; not back on their hosts: {', '.join(named)}" if kept else ""
