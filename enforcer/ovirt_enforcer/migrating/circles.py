"""Moves that go round in circles: repeated after somebody undid them, or undone by us, for no new cause.

Whoever moved a VM back (the engine's balancing, its affinity enforcement, an administrator) will do so again.
To move it once more mends nothing, so it is said who that was, and the VM is left alone: longer each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.gates.history import by_vm
from ovirt_enforcer.migrating.circumstances import digest
from ovirt_placement.answers.names import host_name
from ovirt_placement.model import Snapshot
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
    #: For how long the VM is left alone since then.
    pause_seconds: float

    def reason(self, snapshot: Snapshot) -> str:
        target = host_name(self.intent.target, snapshot)
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"it was moved to {target} {often}, and away again by somebody else, though no rule has changed; "
            f"it is left alone for {self.pause_seconds:.0f} s"
        )


def undone(snapshot: Snapshot, history: Sequence[Intent], first_seconds: float) -> dict[str, Undone]:
    """VMs that are elsewhere than we moved them, and that are left alone for that, by VM id.

    For `first_seconds`, doubled each time, up to a day.
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
        if last.age_seconds < pause:
            found[vm] = Undone(last, times, pause)
    return found


def left_behind(
    snapshot: Snapshot, history: Sequence[Intent], first_seconds: float
) -> dict[tuple[str, str], str]:
    """Hosts that we took VMs from lately, and do not send them back to for no new cause, by VM and host."""
    pauses = BackOff(first_seconds, _LONGEST_SECONDS)
    found = {}
    for vm, intents in by_vm(_done(history)).items():
        for intent in intents:
            times = sum(_same(intent, other) for other in intents)
            recent = intent.age_seconds < pauses.pause_after(times)
            if intent.source is not None and recent and _unchanged(intent, snapshot):
                source = host_name(intent.source, snapshot)
                found[vm, intent.source] = f"it was taken from {source} lately, and no rule has changed since"
    return found


def _done(history: Sequence[Intent]) -> list[Intent]:
    return [intent for intent in history if intent.state is IntentState.DONE]


def _same(one: Intent, other: Intent) -> bool:
    """Whether both are one move, decided under the same circumstances."""
    return (one.target, one.circumstances) == (other.target, other.circumstances)


def _unchanged(intent: Intent, snapshot: Snapshot) -> bool:
    hosts = (intent.source or "", intent.target)
    return intent.circumstances == digest(snapshot, intent.vm, hosts)
