"""What recent moves of VMs hold back: the engine refused them, or they go round in circles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, takewhile
from math import inf
from typing import Final

import msgspec

from ovirt_enforcer.actions.other_movers import Origins
from ovirt_enforcer.gates.gate import asked, by_vm, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.writing.migration import Conflict, PermissionDenied, Rejection
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import host_name
from ovirt_placement.model.statistics import UNMEASURED
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_service.back_off import BackOff

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
) -> dict[tuple[str, str], str]:
    """Targets that VMs are not sent to for now, with the reason, by VM and host id.

    One may be asked for again as soon as the circumstances of the migration have changed, or after a pause:
    `first_seconds`, doubled with each refusal in a row, up to a day.
    """
    return {
        (last.vm, last.target): refusal_reason(last, snapshot)
        for last, pause in _of_targets(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def refused_vms(snapshot: Snapshot, history: Sequence[Intent], first_seconds: float) -> dict[str, str]:
    """VMs that are left alone for now, since the engine refuses to move them at all, by VM id."""
    return {
        last.vm: refusal_reason(last, snapshot)
        for last, pause in _of_vms(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def seconds_until_asked_again(history: Sequence[Intent], first_seconds: float) -> float:
    """How long until the next of these pauses is over; infinite without any."""
    pauses = chain(_of_targets(history, first_seconds), _of_vms(history, first_seconds))
    return min((pause - last.age_seconds for last, pause in pauses if last.age_seconds < pause), default=inf)


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
) -> dict[tuple[str, str], str]:
    """Hosts that we took VMs from lately, and do not send them back to for no new cause, by VM and host."""
    found = {}
    for intent, source, pause in _left(history, first_seconds):
        if intent.age_seconds < pause and _unchanged(intent, snapshot):
            name = host_name(source, snapshot)
            found[intent.vm, source] = f"it was taken from {name} lately, and no rule has changed since"
    return found


def seconds_until_return(history: Sequence[Intent], first_seconds: float) -> float:
    """How long until the next host may be gone back to; infinite without any that may not."""
    left = (pause - intent.age_seconds for intent, _, pause in _left(history, first_seconds))
    return min((seconds for seconds in left if seconds > 0), default=inf)


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

    @cached_property
    def undone(self) -> Mapping[str, Undone]:
        """VMs that somebody else moves away from where we move them. Raises what `Origins` raises."""
        seconds = self.settings.circle_seconds
        return undone_moves(self.snapshot, self.history, seconds, self._undone_after)

    @cached_property
    def left_out(self) -> Mapping[tuple[str, str], str]:
        """Hosts that VMs are not to be sent to, with the reason, by VM and host id."""
        return {
            **left_behind(self.snapshot, self.history, self.settings.circle_seconds),
            **refused_targets(self.snapshot, self.history, self.settings.refusal_seconds),
        }

    @cached_property
    def frozen(self) -> Mapping[str, str]:
        """VMs that are not to be moved at all, with the reason, by VM id."""
        return {
            **{vm: undone.reason(self.snapshot) for vm, undone in self.undone.items()},
            **refused_vms(self.snapshot, self.history, self.settings.refusal_seconds),
        }

    def left_out_of(self, cluster: str) -> dict[tuple[str, str], str]:
        """The same as `left_out` of the VMs of one cluster."""
        vms = {vm.id for vm in self.snapshot.vms if vm.cluster == cluster}
        return {(vm, host): reason for (vm, host), reason in self.left_out.items() if vm in vms}

    def seconds_left(self, cluster: str) -> float:
        """How long until the first of these is over in a cluster; infinite without any."""
        history = [intent for intent in self.history if intent.cluster == cluster]
        return min(
            seconds_until_asked_again(history, self.settings.refusal_seconds),
            seconds_until_return(history, self.settings.circle_seconds),
            *(one.left_seconds for one in self.undone.values() if one.intent.cluster == cluster),
        )

    def _undone_after(self, intent: Intent) -> float:
        return self.origins.undone_after(intent, self.snapshot.vm_by_id[intent.vm].host)
