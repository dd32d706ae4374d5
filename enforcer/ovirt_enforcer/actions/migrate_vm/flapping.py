"""Moves that go round in circles: repeated after somebody undid them, or undone by us, for no new cause.

What moved a VM back (the engine's balancing, its affinity enforcement, an administrator) will do so again.
To move it once more repairs nothing, so it is said who that was, and the VM is left alone: longer each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from ovirt_enforcer.actions.migrate_vm.fingerprint import digest
from ovirt_enforcer.gates.gate import by_vm
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_service.back_off import BackOff

_LONGEST_SECONDS: Final = 24 * 3600.0

#: How far back the history must go.
REACH_SECONDS: Final = 2 * _LONGEST_SECONDS


@dataclass(frozen=True, slots=True)
class Undone:
    """A migration of ours that somebody else undid, though nothing else has changed."""

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


def undone(
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


def seconds_left(history: Sequence[Intent], first_seconds: float) -> float:
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


def _unchanged(intent: Intent, snapshot: Snapshot) -> bool:
    hosts = (intent.source or "", intent.target)
    return intent.fingerprint == digest(snapshot, intent.vm, hosts)
