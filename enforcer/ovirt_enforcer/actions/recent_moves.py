"""Who moved a VM lately, and what follows: it, its soft rules or a target are left alone for a while."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from math import inf
from typing import Final

import msgspec

from ovirt_enforcer.gates.gate import Held, asked, by_vm, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading import events
from ovirt_placement.engine.writing.migration import Conflict, PermissionDenied, Rejection
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.model.statistics import UNMEASURED
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_service.back_off import BackOff


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


_DIGITS = 12


def digest(snapshot: Snapshot, vm: str, hosts: tuple[str, ...]) -> str:
    """The circumstances of a VM's migration between hosts, in whatever direction.

    They are the VM and the hosts as they are set up, its cluster's policy, the groups that it is in, which of
    their members run, and whether a host is emptied for maintenance: that is over soon, and VMs may return.
    Not where VMs run, how busy anything is and how much memory is free: a move that is undone and repeated
    changes these itself.
    """
    known = snapshot.vm_by_id.get(vm)
    groups = snapshot.groups_of_vm.get(vm, ())
    facts = (
        None if known is None else _set_up(known),
        [_set_up_host(snapshot.host_by_id.get(host)) for host in sorted(hosts)],
        None if known is None else snapshot.cluster_by_id.get(known.cluster),
        [
            (group, sorted(snapshot.group_vms[group.id]), sorted(snapshot.group_hosts[group.id]))
            for group in groups
        ],
        sorted(_run_of(snapshot.vm_by_id[peer]) for peer in _members(snapshot, vm) if _runs(snapshot, peer)),
    )
    drained = sorted(set(hosts).intersection(snapshot.draining_hosts))
    return hashlib.sha256(msgspec.json.encode((*facts, drained) if drained else facts)).hexdigest()[:_DIGITS]


def _members(snapshot: Snapshot, vm: str) -> set[str]:
    groups = snapshot.groups_of_vm.get(vm, ())
    return {vm, *(peer for group in groups for peer in snapshot.group_vms[group.id])}


def _runs(snapshot: Snapshot, vm: str) -> bool:
    known = snapshot.vm_by_id.get(vm)
    return known is not None and known.host is not None


def _run_of(vm: Vm) -> tuple[str, float]:
    """Which run of a VM this is."""
    return vm.id, vm.running_since or 0.0


def _set_up(vm: Vm) -> Vm:
    return msgspec.structs.replace(
        vm, host=None, status="", usage_mem_percent=None, usage_cpu_percent=None, migrating_to=None
    )


def _set_up_host(host: Host | None) -> Host | None:
    if host is None:
        return None
    return msgspec.structs.replace(host, free_mb=0, spm=False, **UNMEASURED)


#: What stands against the VM itself is a lock, a backup or its state, and mostly over soon.
_FIRST_WAIT_SECONDS: Final = 10.0
_LONGEST_WAIT_SECONDS: Final = 600.0
#: This many refusals in a row of a VM, whatever the targets, are a matter of the VM, too.
_MOST_IN_A_ROW: Final = 6
_LONGEST_SECONDS: Final = 24 * 3600.0


def cause_of(rejection: Rejection, target_name: str | None) -> Cause:
    """What a refusal is about: the target, or the VM wherever it was to go.

    The engine's sentences are in its own language and release, so they are not read, but for one thing: that
    of a filter names the host that it is about. `target_name` is None where the engine was to choose one.
    """
    of_all = isinstance(rejection, Conflict | PermissionDenied)
    any_target = target_name is None or (of_all and target_name not in str(rejection))
    return Cause.VM_REFUSED if any_target else Cause.TARGET_REFUSED


def refused_targets(
    snapshot: Snapshot, history: Sequence[Intent], first_seconds: float
) -> dict[tuple[str, str], Held]:
    """Targets that VMs are not sent to for now, by VM and host id.

    One may be asked for again as soon as the circumstances of the migration have changed, or after a pause:
    `first_seconds`, doubled with each refusal in a row, up to a day.
    """
    return {
        (last.vm, last.target): Held(refusal_reason(last, snapshot), pause - last.age_seconds)
        for last, pause in _of_targets(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def refused_vms(snapshot: Snapshot, history: Sequence[Intent], first_seconds: float) -> dict[str, Held]:
    """VMs that are left alone for now, since the engine refuses to move them at all, by VM id."""
    return {
        last.vm: Held(refusal_reason(last, snapshot), pause - last.age_seconds)
        for last, pause in _of_vms(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def refusal_reason(intent: Intent, snapshot: Snapshot) -> str:
    """Why a target is left out, or a VM waits, as a sentence with names."""
    return f"the engine refused to move it to {host_name(intent.target, snapshot)}: {intent.error}"


def _of_targets(history: Sequence[Intent], first_seconds: float) -> Iterator[tuple[Intent, float]]:
    """The last migration of a VM to a host, where that was refused, with the pause since then."""
    pauses = BackOff(first_seconds, _LONGEST_SECONDS)
    found: dict[tuple[str, str], list[Intent]] = {}
    for intent in asked(history):
        found.setdefault((intent.vm, intent.target), []).append(intent)
    for intents in found.values():
        if refused(intents[-1]) and not _any_target(intents[-1]):
            yield intents[-1], pauses.pause_after(len(_in_a_row(intents)))


def _of_vms(history: Sequence[Intent], first_seconds: float) -> Iterator[tuple[Intent, float]]:
    """The last migration of each VM, with the pause since then."""
    for intents in by_vm(asked(history)).values():
        yield intents[-1], _wait(_in_a_row(intents), first_seconds)


def _wait(refusals: Sequence[Intent], first_seconds: float) -> float:
    """How long a VM waits after these refusals in a row, the last one first."""
    of_vm = len(list(takewhile(_any_target, refusals)))
    rounds = len(refusals) // _MOST_IN_A_ROW
    return max(
        BackOff(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS).pause_after(of_vm),
        BackOff(first_seconds, _LONGEST_SECONDS).pause_after(rounds),
    )


def _in_a_row(intents: Sequence[Intent]) -> list[Intent]:
    """The refusals since anything else, the last one first."""
    return list(takewhile(refused, reversed(intents)))


def _any_target(intent: Intent) -> bool:
    return refused(intent) and intent.cause is Cause.VM_REFUSED


def _unchanged(intent: Intent, snapshot: Snapshot) -> bool:
    hosts = (intent.source or "", intent.target)
    return intent.fingerprint == digest(snapshot, intent.vm, hosts)


@dataclass(frozen=True, slots=True)
class Undone:
    """A migration of ours that somebody else undid, though nothing else has changed.

    What moved a VM back (the engine's balancing, its affinity enforcement, an administrator) will do so
    again. To move it once more repairs nothing: it is said who that was, and the VM is left alone, longer
    each time.
    """

    intent: Intent
    #: How often we made it under these circumstances.
    times: int
    #: For how long the VM is left alone, and how much of that is left.
    pause_seconds: float
    left_seconds: float

    def reason(self, snapshot: Snapshot) -> str:
        target = host_name(self.intent.target, snapshot)
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"it was moved to {target} {often}, and away again by somebody else, though no rule has changed; "
            f"it is left alone for {self.pause_seconds:.0f} s"
        )


def undone_moves(
    snapshot: Snapshot,
    history: Sequence[Intent],
    first_seconds: float,
    undone_after: Callable[[Intent], float] = lambda intent: 0.0,
) -> dict[str, Undone]:
    """VMs that are elsewhere than we moved them, and that are left alone for that, by VM id.

    For `first_seconds` since somebody else moved them, doubled each time, up to a day. `undone_after` says
    how many seconds after the end of a migration of ours that was.
    """
    pauses = BackOff(first_seconds, _LONGEST_SECONDS)
    found = {}
    for vm, intents in by_vm(_done(history)).items():
        last = intents[-1]
        now = snapshot.vm_by_id.get(vm)
        if now is None or now.host in (None, last.target) or not _unchanged(last, snapshot):
            continue
        times = sum(_same(intent, last) for intent in intents)
        pause = pauses.pause_after(times)
        left = pause - max(0.0, last.age_seconds - undone_after(last))
        if left > 0:
            found[vm] = Undone(last, times, pause, left)
    return found


def left_behind(
    snapshot: Snapshot, history: Sequence[Intent], first_seconds: float
) -> dict[tuple[str, str], Held]:
    """Hosts that we took VMs from lately, and do not send them back to for no new cause, by VM and host."""
    found = {}
    for intent, source, pause in _left(history, first_seconds):
        if intent.age_seconds < pause and _unchanged(intent, snapshot):
            reason = f"it was taken from {host_name(source, snapshot)} lately, and no rule has changed since"
            found[intent.vm, source] = Held(reason, pause - intent.age_seconds)
    return found


def _left(history: Sequence[Intent], first_seconds: float) -> Iterator[tuple[Intent, str, float]]:
    """Migrations of ours, with the hosts that they left, and for how long one is not gone back to."""
    pauses = BackOff(first_seconds, _LONGEST_SECONDS)
    for intents in by_vm(_done(history)).values():
        for intent in intents:
            if intent.source is not None:
                times = sum(_same(intent, other) for other in intents)
                yield intent, intent.source, pauses.pause_after(times)


def _done(history: Sequence[Intent]) -> list[Intent]:
    return [intent for intent in history if intent.state is IntentState.DONE]


def _same(one: Intent, other: Intent) -> bool:
    """Whether both are one move, decided under the same circumstances."""
    return (one.target, one.fingerprint) == (other.target, other.fingerprint)


#: How far back the history must go.
REACH_SECONDS: Final = 2 * _LONGEST_SECONDS


@dataclass(frozen=True)
class Backoff:
    """VMs and targets that are left alone; `history` has the migrations that have ended, the oldest first."""

    settings: EnforcerSettings
    snapshot: Snapshot
    history: Sequence[Intent]
    origins: Origins
    #: VMs that somebody else moves to and fro, by id.
    restless: Mapping[str, Restless] = field(default_factory=dict)

    @cached_property
    def undone(self) -> Mapping[str, Undone]:
        """VMs that somebody else moves away from where we move them. Raises what `Origins` raises."""
        seconds = self.settings.circle_seconds
        return undone_moves(self.snapshot, self.history, seconds, self._undone_after)

    @cached_property
    def refused_targets(self) -> Mapping[tuple[str, str], Held]:
        """Hosts that the engine refused for VMs, by VM and host id."""
        return refused_targets(self.snapshot, self.history, self.settings.refusal_seconds)

    @cached_property
    def refused_vms(self) -> Mapping[str, Held]:
        """VMs that the engine refuses to move at all, by VM id."""
        return refused_vms(self.snapshot, self.history, self.settings.refusal_seconds)

    @cached_property
    def left_behind(self) -> Mapping[tuple[str, str], Held]:
        """Hosts that we took VMs from lately, by VM and host id."""
        return left_behind(self.snapshot, self.history, self.settings.circle_seconds)

    @property
    def _targets(self) -> Mapping[tuple[str, str], Held]:
        return {**self.left_behind, **self.refused_targets}

    def waits(self, by_gates: Mapping[str, Held], cluster: str | None = None) -> dict[tuple[str, str], float]:
        """What may be done in a while, and in how many seconds: VMs with hosts, or with "" for any host.

        `by_gates` are the VMs that gates hold. What goes round in circles is not among it: it would again.
        """
        known = self.snapshot.vm_by_id
        refused = {(vm, ""): one.seconds for vm, one in self.refused_vms.items()}
        found = {pair: one.seconds for pair, one in self.refused_targets.items()}
        for vm, one in by_gates.items():
            refused[vm, ""] = max(one.seconds, refused.get((vm, ""), 0.0))
        lasting = {*self.undone, *self.restless, *(vm for (vm, _), left in refused.items() if left == inf)}
        return {
            (vm, host): seconds
            for (vm, host), seconds in {**found, **refused}.items()
            if vm in known and cluster in (None, known[vm].cluster)
            if vm not in lasting and (vm, host) not in self.left_behind
        }

    @cached_property
    def left_out(self) -> Mapping[tuple[str, str], str]:
        """Hosts that VMs are not to be sent to, with the reason, by VM and host id."""
        return {pair: one.reason for pair, one in self._targets.items()}

    @cached_property
    def frozen(self) -> Mapping[str, str]:
        """VMs that are not to be moved at all, with the reason, by VM id: plans are made around them.

        Of those that others move to and fro these are the ones that no hard rule needs elsewhere.
        """
        clusters = {self.snapshot.vm_by_id[vm].cluster for vm in self.restless}
        needed = {
            location.vm
            for cluster in clusters
            for violation in find_violations(self.snapshot, cluster)
            if violation.hard
            for location in violation.locations
        }
        restless = {vm: one.reason(self.snapshot) for vm, one in self.restless.items() if vm not in needed}
        return {
            **restless,
            **{vm: undone.reason(self.snapshot) for vm, undone in self.undone.items()},
            **{vm: one.reason for vm, one in self.refused_vms.items()},
        }

    def restless_in(self, cluster: str) -> dict[str, Restless]:
        """The VMs of one cluster that somebody else moves to and fro."""
        known = self.snapshot.vm_by_id
        return {vm: found for vm, found in self.restless.items() if known[vm].cluster == cluster}

    def spared(self, cluster: str) -> dict[str, str]:
        """The soft groups of these, with the reason: what is repaired there does not last."""
        return {
            group.id: f"{vm_name(vm, self.snapshot)}: {one.reason(self.snapshot)}"
            for vm, one in self.restless_in(cluster).items()
            for group in self.snapshot.groups_of_vm.get(vm, ())
            if not (group.vms_rule.hard or group.hosts_rule.hard)
        }

    def left_out_of(self, cluster: str) -> dict[tuple[str, str], str]:
        """The same as `left_out` of the VMs of one cluster."""
        vms = {vm.id for vm in self.snapshot.vms if vm.cluster == cluster}
        return {(vm, host): reason for (vm, host), reason in self.left_out.items() if vm in vms}

    def seconds_left(self, cluster: str) -> float:
        """How long until the first of these is over in a cluster; infinite without any."""
        known = self.snapshot.vm_by_id
        held = [(vm, one.seconds) for (vm, _), one in self._targets.items()]
        held += [(vm, one.seconds) for vm, one in self.refused_vms.items()]
        held += [(vm, one.left_seconds) for vm, one in self.undone.items()]
        held += [(vm, one.left_seconds) for vm, one in self.restless.items()]
        return min(
            (seconds for vm, seconds in held if vm in known and known[vm].cluster == cluster), default=inf
        )

    def _undone_after(self, intent: Intent) -> float:
        return self.origins.undone_after(intent, self.snapshot.vm_by_id[intent.vm].host)
