"""Lays what was decided a moment ago over a snapshot, until the engine shows where each VM really is."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ovirt_placement.inventory.expected.choice import expected_host, of_one_call
from ovirt_placement.inventory.expected.traces import Outcome, Trace, Traces
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.statuses import RESTING_STATUSES
from ovirt_placement.rules.index import with_more_pending

#: A snapshot that is so much younger than a decision would show what came of it: events are no later.
_SHOWN_AFTER_SECONDS = 5.0


class Expected(NamedTuple):
    """A VM on its way to a host, as far as the machine can tell."""

    vm: str
    host: str
    memory_mb: int


class _Choice(NamedTuple):
    """What was made of the traces of a VM when they were first seen: it stays so."""

    traces: Sequence[Trace]
    #: The first of the call.
    trace: Trace
    #: None where none can be told, or the engine showed the VM already.
    host: str | None


class ExpectedOverlay:
    """The expected placements of one engine."""

    def __init__(self, traces: Traces, longest_seconds: float) -> None:
        """After `longest_seconds` nothing is expected any more of a decision."""
        self._traces = traces
        self._longest_seconds = longest_seconds
        self._lock = threading.Lock()
        self._choices: dict[str, _Choice] = {}
        #: With what it was made of; the same object comes again, so that what it has indexed is kept.
        self._made: tuple[Snapshot, tuple[Expected, ...], Snapshot] | None = None
        #: Of the last answer: what it is of, itself, and how long it holds at most.
        self._seen: tuple[object, ...] | None = None
        self._shown: Snapshot | None = None
        self._until = 0.0

    def over(self, base: Snapshot, as_of: float, now: float) -> Snapshot:
        """Return the snapshot with the expected placements as `pending`.

        The snapshot was true at the moment `as_of`.
        """
        with self._lock:
            traces = self._traces.read()
            if not traces:
                return base
            seen = base, traces, as_of
            if self._shown is not None and self._is_of(seen) and now < self._until:
                return self._shown
            self._seen, self._shown = seen, self._laid(base, traces, as_of, now)
            self._until = self._longest_seconds + min(found[-1].at for found in traces.values())
            return self._shown

    def _is_of(self, seen: tuple[Snapshot, object, float]) -> bool:
        return self._seen is not None and (
            self._seen[0] is seen[0] and self._seen[1] is seen[1] and self._seen[2] == seen[2]
        )

    def _laid(
        self, base: Snapshot, traces: Mapping[str, Sequence[Trace]], as_of: float, now: float
    ) -> Snapshot:
        self._choices = {vm: choice for vm, choice in self._choices.items() if vm in traces}
        expected = tuple(self._expected(base, traces, as_of, now))
        if not expected:
            return base
        last = self._made
        if last is None or last[0] is not base or last[1] != expected:
            pending = tuple(Pending(one.vm, one.host, one.memory_mb) for one in expected)
            like = last[2] if last is not None and last[0] is base else base
            last = self._made = (base, expected, with_more_pending(base, pending, like=like))
        return last[2]

    def _expected(
        self, base: Snapshot, traces: Mapping[str, Sequence[Trace]], as_of: float, now: float
    ) -> Iterator[Expected]:
        """Those of the earliest decisions first: each knew of the ones before."""
        promised: defaultdict[str, list[Vm]] = defaultdict(list)
        for vm_id, found in sorted(traces.items(), key=lambda entry: (entry[1][-1].at, entry[0])):
            vm = base.vm_by_id.get(vm_id)
            if now - found[-1].at > self._longest_seconds:
                self._traces.drop(vm_id)
            elif vm is not None and (host := self._host(base, vm, found, promised, as_of)) is not None:
                promised[host].append(vm)
                yield Expected(vm_id, host, vm.memory_mb)

    def _host(
        self,
        base: Snapshot,
        vm: Vm,
        found: Sequence[Trace],
        promised: Mapping[str, Sequence[Vm]],
        as_of: float,
    ) -> str | None:
        """Where a VM is still expected."""
        choice = self._choices.get(vm.id)
        if choice is None or choice.traces is not found:
            call = of_one_call(found)
            settled = _is_settled(vm, call[-1], as_of)
            host = None if settled else expected_host(base, vm, call, promised)
            choice = self._choices[vm.id] = _Choice(found, call[-1], host)
        elif choice.host is not None and _is_settled(vm, choice.trace, as_of):
            self._settle(vm, choice.host, choice.trace)
            return None
        return None if vm.id in base.pending_hosts else choice.host

    def _settle(self, vm: Vm, expected: str, trace: Trace) -> None:
        """Remove the traces, and take note of whether we were right, if the VM went anywhere."""
        real = vm.migrating_to or (vm.host if vm.host != trace.present else None)
        if real is None:
            self._traces.drop(vm.id)
        else:
            self._traces.drop(vm.id, Outcome.RIGHT if real == expected else Outcome.WRONG)


def _is_settled(vm: Vm, trace: Trace, as_of: float) -> bool:
    """Whether the engine shows where the VM is by now, or that nothing came of the decision."""
    if vm.migrating_to is not None or (vm.host is not None and vm.host != trace.present):
        return True
    rests = vm.status in RESTING_STATUSES or vm.status == "up"
    return rests and as_of > trace.at + _SHOWN_AFTER_SECONDS
