"""Lays what was decided a moment ago over a snapshot, until the engine shows where each VM really is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from ovirt_placement.inventory.expected.choice import expected_host, of_one_call
from ovirt_placement.inventory.expected.engines_weights import EnginesWeights
from ovirt_placement.inventory.expected.promised import Promised
from ovirt_placement.inventory.expected.traces import Outcome, Trace, Traces
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.statuses import RESTING_STATUSES
from ovirt_placement.rules.index import share, with_more_pending

#: A snapshot that is so much younger than a decision would show what came of it: events are no later.
_SHOWN_AFTER_SECONDS = 5.0
_NEVER = float("inf")


class _Expected(NamedTuple):
    """A VM on its way to a host, as far as the machine can tell."""

    vm: Vm
    pending: Pending


class _Choice(NamedTuple):
    """What was made of the traces of a VM when they were first seen: it stays so."""

    traces: Sequence[Trace]
    #: The first of the call.
    trace: Trace
    #: None where none can be told, or the engine showed the VM already.
    host: str | None


class ExpectedOverlay:
    """The expected placements of one engine: a look at it costs by what has changed since the last one."""

    def __init__(self, traces: Traces, longest_seconds: float) -> None:
        """After `longest_seconds` nothing is expected any more of a decision."""
        self._traces = traces
        self._longest_seconds = longest_seconds
        self._lock = threading.Lock()
        self._choices: dict[str, _Choice] = {}
        self._expected: dict[str, _Expected] = {}
        self._promised = Promised()
        self._engines_weights = EnginesWeights(self._promised)
        self._base: Snapshot | None = None
        #: The VMs of which the base says itself where they are to go.
        self._meant: set[str] = set()
        #: The base with what is expected; the same object comes again, so that what it has indexed is kept.
        self._laid: Snapshot | None = None
        #: The VMs of which something else is expected now than in that.
        self._differing: set[str] = set()
        #: What was laid over the base before this one, until it was of use.
        self._before: Snapshot | None = None
        #: Until the snapshot, or the clock, says a later moment, nothing ends that has not changed.
        self._rests_at = self._ends_at = _NEVER

    def leave(self, vm: str, trace: Trace) -> None:
        """Let later decisions know what a unit has found of a VM."""
        with self._lock:
            self._traces.leave(vm, trace)

    def over(self, base: Snapshot, as_of: float, now: float) -> Snapshot:
        """Return the snapshot with the expected placements as `pending`.

        The snapshot was true at the moment `as_of`.
        """
        with self._lock:
            self._look(base, as_of, now)
            if not self._expected:
                self._laid = self._before = None
                return base
            if self._laid is None or self._differing:
                self._laid = self._laid_over(base)
                self._before, self._differing = None, set()
            return self._laid

    def judge(self, base: Snapshot, as_of: float, now: float) -> None:
        """Choose a host for each decision that is new, and end what the snapshot shows the end of."""
        with self._lock:
            self._look(base, as_of, now)

    def _laid_over(self, base: Snapshot) -> Snapshot:
        pending = tuple([one.pending for one in self._expected.values()])
        if self._laid is not None:
            return with_more_pending(base, pending, like=self._laid, differing=self._differing)
        laid = with_more_pending(base, pending, like=base, differing=set(self._expected))
        if self._before is not None:
            share(laid, like=self._before)
        return laid

    def _look(self, base: Snapshot, as_of: float, now: float) -> None:
        vms = self._traces.read()
        if base is not self._base or as_of > self._rests_at or now > self._ends_at:
            vms |= self._traces.found.keys()
            self._rests_at = self._ends_at = _NEVER
        if base is not self._base:
            self._before = self._laid or self._base
            self._base, self._laid = base, None
            self._meant = {entry.vm for entry in base.pending}
        for vm in sorted(vms, key=self._decided):
            self._look_at(vm, base, as_of, now)

    def _decided(self, vm: str) -> tuple[float, str]:
        """The earliest decisions come first: each knew of the ones before."""
        found = self._traces.found.get(vm)
        return (found[-1].at if found else 0.0), vm

    def _look_at(self, name: str, base: Snapshot, as_of: float, now: float) -> None:
        found, vm = self._traces.found.get(name), base.vm_by_id.get(name)
        host = None
        if not found:
            self._choices.pop(name, None)
        elif now - found[-1].at > self._longest_seconds:
            self._traces.drop(name, found[-1].at)
            self._choices.pop(name, None)
        else:
            self._ends_at = min(self._ends_at, found[-1].at + self._longest_seconds)
            if vm is not None:
                host = self._host(base, vm, found, as_of)
        self._expect(name, vm, host)

    def _host(self, base: Snapshot, vm: Vm, found: Sequence[Trace], as_of: float) -> str | None:
        """Where a VM is still expected."""
        choice = self._choices.get(vm.id)
        if choice is None or choice.traces is not found:
            call = of_one_call(found)
            host = None
            if not _is_settled(vm, call[-1], as_of):
                host = self._chosen(base, vm, call)
            choice = self._choices[vm.id] = _Choice(found, call[-1], host)
        elif choice.host is not None and _is_settled(vm, choice.trace, as_of):
            self._settle(vm, choice.host, choice.trace, found[-1].at)
            return None
        if choice.host is not None and _rests(vm):
            self._rests_at = min(self._rests_at, choice.trace.at + _SHOWN_AFTER_SECONDS)
        return None if vm.id in self._meant else choice.host

    def _chosen(self, base: Snapshot, vm: Vm, call: Sequence[Trace]) -> str | None:
        """The host that will be chosen, as if nothing had been decided about the VM before."""
        before = self._expected.get(vm.id)
        if before is None:
            return expected_host(base, vm, call, self._engines_weights)
        self._promised.remove(before.pending.host, before.vm)
        try:
            return expected_host(base, vm, call, self._engines_weights)
        finally:
            self._promised.add(before.pending.host, before.vm)

    def _expect(self, name: str, vm: Vm | None, host: str | None) -> None:
        """Expect a VM on a host from now on, or nowhere."""
        before = self._expected.get(name)
        if before is not None:
            if before.vm is vm and before.pending.host == host:
                return
            self._promised.remove(before.pending.host, before.vm)
            del self._expected[name]
        pending = None
        if vm is not None and host is not None:
            pending = Pending(name, host, vm.memory_mb)
            if before is not None and before.pending == pending:
                pending = before.pending
            self._promised.add(host, vm)
            self._expected[name] = _Expected(vm, pending)
        if pending is not (before and before.pending):
            self._differing.add(name)

    def _settle(self, vm: Vm, expected: str, trace: Trace, at: float) -> None:
        """Remove the traces, and take note of whether we were right, if the VM went anywhere."""
        real = vm.migrating_to or (vm.host if vm.host != trace.present else None)
        if real is None:
            self._traces.drop(vm.id, at)
        else:
            self._traces.drop(vm.id, at, Outcome.RIGHT if real == expected else Outcome.WRONG)
        self._choices.pop(vm.id, None)


def _is_settled(vm: Vm, trace: Trace, as_of: float) -> bool:
    """Whether the engine shows where the VM is by now, or that nothing came of the decision."""
    if vm.migrating_to is not None or (vm.host is not None and vm.host != trace.present):
        return True
    return _rests(vm) and as_of > trace.at + _SHOWN_AFTER_SECONDS


def _rests(vm: Vm) -> bool:
    return vm.status in RESTING_STATUSES or vm.status == "up"
