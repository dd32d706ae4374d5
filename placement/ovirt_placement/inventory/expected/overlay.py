"""Lays what was decided a moment ago over a snapshot, until the engine shows where each VM really is."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from ovirt_placement.inventory.expected.choice import Foreseen, expected_host, of_one_call
from ovirt_placement.inventory.expected.engines_weights import EnginesWeights
from ovirt_placement.inventory.expected.promised import Promised
from ovirt_placement.inventory.expected.traces import Trace, TraceOutcome, Traces
from ovirt_placement.lookups.index import share, with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.statuses import RESTING_STATUSES
from ovirt_placement.rules.affinity.hard_weight import chained_peers
from ovirt_placement.rules.locations import destinations

#: A snapshot that is so much younger than a decision would show what came of it: events are no later.
_SHOWN_AFTER_SECONDS = 5.0
_NEVER = float("inf")
#: Who finds out where a VM is, by the hosts that the engine offers to another one.
_EVIDENCE = "evidence"


class _Expected(NamedTuple):
    """A VM on its way to a host, as far as the machine knows."""

    vm: Vm
    pending: Pending


class _Choice(NamedTuple):
    """What was made of the traces of a VM when they were first seen: it stays so."""

    traces: Sequence[Trace]
    #: The first of the call.
    trace: Trace
    #: None where none is known, or the engine showed the VM already.
    foreseen: Foreseen | None

    @property
    def host(self) -> str | None:
        return None if self.foreseen is None else self.foreseen.host


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
        #: A VM that was asked about, where there was something to look at.
        self._left_out: set[str] = set()
        #: What was laid over the base before this one, until it was of use.
        self._before: Snapshot | None = None
        #: Until the snapshot, or the clock, says a later moment, nothing ends that has not changed.
        self._rests_at = self._ends_at = _NEVER

    def leave(self, vm: str, trace: Trace) -> None:
        """Let later decisions know what a unit has found of a VM."""
        with self._lock:
            self._traces.leave(vm, trace)

    def over(self, base: Snapshot, as_of: float, now: float, asked: str | None = None) -> Snapshot:
        """Return the snapshot with the expected placements as `pending`.

        The snapshot was true at the moment `as_of`. What was found of a VM that is `asked` about is not
        looked at yet: it is being decided where it goes.
        """
        with self._lock:
            self._look(base, as_of, now, asked)
            if not self._expected:
                self._laid = self._before = None
                return base
            return self._current(base)

    def judge(self, base: Snapshot, as_of: float, now: float) -> None:
        """Choose a host for each decision that is new, and end what the snapshot shows the end of."""
        with self._lock:
            self._look(base, as_of, now)

    def unsure(self, vms: Collection[str]) -> set[str]:
        """Those of the VMs that are expected on a host which the engine need not have chosen."""
        with self._lock:
            choices = {vm: self._choices.get(vm) for vm in vms if vm in self._expected}
            return {
                vm
                for vm, choice in choices.items()
                if choice is None or choice.foreseen is None or not choice.foreseen.sure
            }

    def correct(self, vm: Vm, host: str | None, now: float) -> None:
        """Expect a VM no more where it is expected, but on another host, if one is given."""
        with self._lock:
            expected = self._expected.get(vm.id)
            if expected is None or expected.pending.host == host:
                return
            present = self._choices[vm.id].trace.present
            self._traces.drop(vm.id, now, TraceOutcome.WRONG)
            if host is not None:
                self._traces.leave(vm.id, Trace(_EVIDENCE, now, present, (host,), b"", 0))

    def heard(self, vm: str, host: str | None, before: float, now: float) -> None:
        """Take what an event reports of a VM after a decision: its host, or no start."""
        with self._lock:
            found = self._traces.latest(vm)
            if not found or found[-1].at > before:
                return
            choice = self._choices.get(vm)
            if host is None:
                self._traces.drop(vm, before)
            elif choice is None or choice.host != host:
                self._traces.drop(vm, before, None if choice is None else TraceOutcome.WRONG)
                self._traces.leave(vm, Trace(_EVIDENCE, now, found[-1].present, (host,), b"", 0))

    def _so_far(self, base: Snapshot) -> Snapshot:
        return self._current(base) if self._expected else base

    def _current(self, base: Snapshot) -> Snapshot:
        """The base with what is expected by now."""
        if self._laid is None or self._differing:
            self._laid = self._laid_over(base)
            self._before, self._differing = None, set()
        return self._laid

    def _laid_over(self, base: Snapshot) -> Snapshot:
        pending = tuple([one.pending for one in self._expected.values()])
        if self._laid is not None:
            return with_more_pending(base, pending, like=self._laid, differing=self._differing)
        laid = with_more_pending(base, pending, like=base, differing=set(self._expected))
        if self._before is not None:
            share(laid, like=self._before)
        return laid

    def _look(self, base: Snapshot, as_of: float, now: float, asked: str | None = None) -> None:
        vms = self._traces.read() | self._left_out
        self._left_out = {vm for vm in vms if vm == asked}
        if base is not self._base or as_of > self._rests_at or now > self._ends_at:
            vms |= self._traces.found.keys()
            self._left_out = set()
            self._rests_at = self._ends_at = _NEVER
        if base is not self._base:
            self._before = self._laid or self._base
            self._base, self._laid = base, None
            self._meant = {entry.vm for entry in base.pending}
        for vm in sorted(vms - self._left_out, key=self._decided):
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
            foreseen = None
            if not _is_settled(vm, call[-1], as_of):
                foreseen = self._chosen(base, vm, call)
            if foreseen is not None and foreseen.host == vm.host:
                foreseen = None  # it stays where it is
            choice = self._choices[vm.id] = _Choice(found, call[-1], foreseen)
        elif choice.host is not None and _is_settled(vm, choice.trace, as_of):
            self._settle(base, vm, choice.host, choice.trace, found[-1].at)
            return None
        if choice.host is not None and _rests(vm):
            self._rests_at = min(self._rests_at, choice.trace.at + _SHOWN_AFTER_SECONDS)
        return None if vm.id in self._meant else choice.host

    def _chosen(self, base: Snapshot, vm: Vm, call: Sequence[Trace]) -> Foreseen | None:
        """The host that will be chosen, as if nothing had been decided about the VM before."""
        before = self._expected.get(vm.id)
        foresee = partial(expected_host, base, partial(self._so_far, base), vm, call, self._engines_weights)
        if before is None:
            return foresee()
        self._promised.remove(before.pending.host, before.vm)
        try:
            return foresee()
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
            pending = Pending(name, host, vm.memory_mb, expected=True)
            if before is not None and before.pending == pending:
                pending = before.pending
            self._promised.add(host, vm)
            self._expected[name] = _Expected(vm, pending)
        if pending is not (before and before.pending):
            self._differing.add(name)

    def _settle(self, base: Snapshot, vm: Vm, expected: str, trace: Trace, at: float) -> None:
        """Remove the traces, and take note of whether we were right, if the VM went anywhere."""
        real = vm.migrating_to or (vm.host if vm.host != trace.present else None)
        if real is None:
            self._traces.drop(vm.id, at)
        elif _is_apart(base, vm.id, real):
            self._traces.drop(vm.id, at, TraceOutcome.APART)
        else:
            self._traces.drop(vm.id, at, TraceOutcome.RIGHT if real == expected else TraceOutcome.WRONG)
        self._choices.pop(vm.id, None)


def _is_apart(base: Snapshot, vm: str, host: str) -> bool:
    """Whether others that hard groups tie a VM to, be it through some that are down, run elsewhere."""
    return any(host not in there for peer in chained_peers(base, vm) if (there := destinations(base, peer)))


def _is_settled(vm: Vm, trace: Trace, as_of: float) -> bool:
    """Whether the engine shows where the VM is by now, or that nothing came of the decision."""
    if vm.migrating_to is not None or (vm.host is not None and vm.host != trace.present):
        return True
    return _rests(vm) and as_of > trace.at + _SHOWN_AFTER_SECONDS


def _rests(vm: Vm) -> bool:
    return vm.status in RESTING_STATUSES or vm.status == "up"
