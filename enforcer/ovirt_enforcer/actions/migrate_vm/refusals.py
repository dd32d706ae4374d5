"""What the engine refused, and what that is a reason for: a target is left out, or the VM waits a little.

The engine's sentences are in its own language and release, so they are not read, but for one thing: that of
a filter names the host that it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from math import inf
from typing import Final

from ovirt_enforcer.actions.migrate_vm.fingerprint import digest
from ovirt_enforcer.gates.gate import asked, by_vm, refused
from ovirt_placement.engine.writing.migration import Conflict, PermissionDenied, Rejection
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent
from ovirt_service.back_off import BackOff

#: What stands against the VM itself is a lock, a backup or its state, and mostly over soon.
_FIRST_WAIT_SECONDS: Final = 10.0
_LONGEST_WAIT_SECONDS: Final = 600.0
#: This many refusals in a row of a VM, whatever the targets, are a matter of the VM, too.
_MOST_IN_A_ROW: Final = 6
_LONGEST_SECONDS: Final = 24 * 3600.0

#: How far back the history must go for all that is left out.
REACH_SECONDS: Final = 2 * _LONGEST_SECONDS


def cause_of(rejection: Rejection, target_name: str | None) -> Cause:
    """What a refusal is about: the target, or the VM wherever it was to go.

    `target_name` is None where the engine was to choose one.
    """
    of_all = isinstance(rejection, Conflict | PermissionDenied)
    any_target = target_name is None or (of_all and target_name not in str(rejection))
    return Cause.VM_REFUSED if any_target else Cause.TARGET_REFUSED


def left_out(
    snapshot: Snapshot, history: Sequence[Intent], first_seconds: float
) -> dict[tuple[str, str], str]:
    """Targets that VMs are not sent to for now, with the reason, by VM and host id.

    One may be asked for again as soon as the circumstances of the migration have changed, or after a pause:
    `first_seconds`, doubled with each refusal in a row, up to a day.
    """
    return {
        (last.vm, last.target): reason(last, snapshot)
        for last, pause in _of_targets(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def waiting(snapshot: Snapshot, history: Sequence[Intent], first_seconds: float) -> dict[str, str]:
    """VMs that are left alone for now, since the engine refuses to move them at all, by VM id."""
    return {
        last.vm: reason(last, snapshot)
        for last, pause in _of_vms(history, first_seconds)
        if last.age_seconds < pause and _unchanged(last, snapshot)
    }


def seconds_left(history: Sequence[Intent], first_seconds: float) -> float:
    """How long until the next of these pauses is over; infinite without any."""
    pauses = chain(_of_targets(history, first_seconds), _of_vms(history, first_seconds))
    return min((pause - last.age_seconds for last, pause in pauses if last.age_seconds < pause), default=inf)


def reason(intent: Intent, snapshot: Snapshot) -> str:
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
