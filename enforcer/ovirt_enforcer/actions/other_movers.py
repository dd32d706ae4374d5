"""Who else moves VMs: by the engine's events, and by readings that show a VM moved to and fro."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading import events
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.intents import Intent, IntentState


class Origins:
    """Who else migrates VMs, by the engine's events. Methods raise what `EngineConnection.get` raises."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        #: What `undone_after` found, by intent and the VM's host since.
        self._known: dict[tuple[int, str | None], float] = {}

    def who_moved(self, vm: str, ours: Collection[str]) -> str:
        """The engine's sentence about the last migration of a VM that was none of ours, by correlation id."""
        begun = [event for event in self._begun(vm) if (event.correlation_id or "") not in ours]
        return begun[-1].description.strip() if begun else "the engine's events do not show by whom"

    def undone_after(self, intent: Intent, host: str | None) -> float:
        """How many seconds after a migration of ours somebody else last moved its VM, which is on `host` now.

        0 where events do not show it. Both moments are those of the engine's clock, which is asked once.
        """
        if (intent.id, host) not in self._known:
            self._known[intent.id, host] = self._undone_after(intent)
        return self._known[intent.id, host]

    def _undone_after(self, intent: Intent) -> float:
        begun = self._begun(intent.vm)
        own = intent.correlation_id.partition("-")[0]
        ours = [event for event in begun if event.correlation_id == own]
        others = [event for event in begun if event.correlation_id != own]
        if not ours or not others or others[-1].id < ours[-1].id:
            return 0.0
        took = max(0.0, intent.updated - intent.created)
        return max(0.0, others[-1].time - ours[-1].time - took)

    def _begun(self, vm: str) -> list[events.EngineEvent]:
        found = events.find_migration_events(self._connection, vm_id=vm)
        return [event for event in found if event.code in events.STARTED]


#: How often a VM must have come to a host where it was before: once, somebody may have decided otherwise.
_RETURNS: Final = 2
#: How many hosts of a VM are remembered.
_REMEMBERED: Final = 20
#: A migration of ours may have ended a little before the reading that shows it.
_SLACK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Restless:
    """A VM that somebody else moves to and fro."""

    vm: str
    #: The hosts that it was on, the last one now.
    hosts: tuple[str, ...]
    #: Since the first of these migrations, and until it counts as at rest if nobody moves it again.
    within_seconds: float
    left_seconds: float

    def reason(self, snapshot: Snapshot) -> str:
        names = sorted(host_name(host, snapshot) for host in {*self.hosts})
        return f"somebody else moves it to and fro between {' and '.join(names)}"


@dataclass(slots=True)
class _Way:
    """Where a VM has been, and when somebody else moved it."""

    hosts: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    moments: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED - 1))


def frozen(snapshot: Snapshot, restless: Mapping[str, Restless]) -> dict[str, str]:
    """The restless VMs that no hard rule needs elsewhere, with the reason: plans are made around them."""
    violated = {
        vm
        for cluster in {snapshot.vm_by_id[vm].cluster for vm in restless}
        for violation in find_violations(snapshot, cluster)
        if violation.hard
        for location in violation.locations
        for vm in (location.vm,)
    }
    return {vm: one.reason(snapshot) for vm, one in restless.items() if vm not in violated}


def spared(snapshot: Snapshot, restless: Mapping[str, Restless]) -> dict[str, str]:
    """The soft groups of restless VMs, with the reason: what is repaired there does not last."""
    return {
        group.id: f"{vm_name(vm, snapshot)}: {one.reason(snapshot)}"
        for vm, one in restless.items()
        for group in snapshot.groups_of_vm.get(vm, ())
        if not (group.vms_rule.hard or group.hosts_rule.hard)
    }


class Movements:
    """Finds VMs that others move to and fro, over the readings of one process.

    A plan that counts on where such a VM is would be out of date before it is carried out: the VM is left
    alone, and so are its soft rules. Nothing of this must survive: after a restart it is found out again.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        """A VM that nobody moved for this many `seconds` is at rest."""
        self._seconds = seconds
        self._clock = clock
        self._looked_at = clock()
        self._hosts: dict[str, str] = {}
        self._ways: dict[str, _Way] = {}

    def look(self, snapshot: Snapshot, migrations: Iterable[Intent]) -> Mapping[str, Restless]:
        """Take note of a reading; return the VMs that are restless, by VM id.

        `migrations` are those of the enforcer, open and ended: what these explain is no movement of others.
        """
        now = self._clock()
        lately = now - self._looked_at + _SLACK_SECONDS
        ours = {(one.vm, one.target) for one in migrations if one.open or _arrived(one, lately)}
        self._looked_at = now
        serving = {host.id for host in snapshot.hosts if host.status == "up"}
        for vm in snapshot.vms:
            self._note(vm, ours, serving, now)
        self._forget(snapshot.vm_by_id.keys(), now)
        return {vm: found for vm, way in self._ways.items() if (found := self._found(vm, way, now))}

    def _note(self, vm: Vm, ours: Collection[tuple[str, str]], serving: Collection[str], now: float) -> None:
        before = self._hosts.get(vm.id)
        if vm.host is None:
            self._hosts.pop(vm.id, None)  # its next start places it again
            self._ways.pop(vm.id, None)
            return
        self._hosts[vm.id] = vm.host
        if before is None or before == vm.host or (vm.id, vm.host) in ours:
            return
        if before not in serving:
            return  # it had to leave: the host is drained, or has failed
        way = self._ways.setdefault(vm.id, _Way())
        if not way.hosts or way.hosts[-1] != before:
            way.hosts.append(before)
        way.hosts.append(vm.host)
        way.moments.append(now)

    def _forget(self, known: Collection[str], now: float) -> None:
        for vm in [vm for vm, way in self._ways.items() if now - way.moments[-1] >= self._seconds]:
            del self._ways[vm]
        for gone in self._hosts.keys() - known:
            del self._hosts[gone]
            self._ways.pop(gone, None)

    def _found(self, vm: str, way: _Way, now: float) -> Restless | None:
        if len(way.hosts) - len({*way.hosts}) < _RETURNS:
            return None
        return Restless(vm, tuple(way.hosts), now - way.moments[0], self._seconds - (now - way.moments[-1]))


def _arrived(intent: Intent, lately_seconds: float) -> bool:
    return intent.state is IntentState.DONE and intent.age_seconds < lately_seconds
