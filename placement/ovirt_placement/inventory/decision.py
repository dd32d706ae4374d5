"""What a policy unit decides on: what the engine has shown, and what was accepted a moment ago."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest, nsmallest
from operator import add
from typing import NamedTuple, Protocol

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.publication import now
from ovirt_placement.lookups import share, with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.infrastructure import RESTING_STATUSES
from ovirt_placement.rules.elements.ranks import order_hosts, points_of
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.engine_weights import ENGINES_WEIGHTS, memory_score
from ovirt_service.errors import UserError

#: What units find out about one VM lies closer together than this; later it is another decision about it.
_ONE_CALL_SECONDS = 1.0
#: A snapshot that is so much younger than a decision would show what came of it: events are no later.
_SHOWN_AFTER_SECONDS = 5.0
#: A filter that leaves more hosts than this has not decided much: the weights have more to say.
_FEW_HOSTS = 8
#: Of more hosts than this it would take too long to weigh each.
_MANY_HOSTS = 64
#: The engine's weight by free memory, by its name in a cluster's state.
_EVEN_MEMORY = "even_memory_weight"


@dataclass
class _Start:
    """One decision about a VM: where it was, and what our units have found since."""

    present: str | None
    at: float
    #: The hosts that filters left, by unit, where these are few.
    left: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: By unit, the hosts that a weight was asked about, their ranks, and its factor.
    ranks: dict[str, tuple[tuple[str, ...], Sequence[int], int]] = field(default_factory=dict)
    #: Evidence, where there is some.
    known: str | None = None
    guess: str | None = None
    #: Whether there is something that the guess does not count with.
    open: bool = True


class Accepted:
    """What was accepted within the last seconds, for all threads of the process that decides."""

    def __init__(self, longest_seconds: float) -> None:
        """After `longest_seconds` nothing is expected any more of a decision."""
        self._longest_seconds = longest_seconds
        self._lock = threading.Lock()
        #: By VM, the earliest decision first: each knew of the ones before.
        self._starts: dict[str, _Start] = {}
        #: A base with what is expected; the same object comes again, so that what it has indexed is kept.
        self._base: Snapshot | None = None
        self._laid: Snapshot | None = None

    def leave_ranks(
        self, unit: str, vm: Vm, hosts: tuple[str, ...], ranks: Sequence[int], factor: int, now: float
    ) -> None:
        """Take note of the ranks that a weight has given to hosts for a VM: one of them will be chosen."""
        with self._lock:
            self._start(vm, unit, now).ranks[unit] = (hosts, ranks, factor)

    def leave_accepted(self, unit: str, vm: Vm, hosts: Sequence[str], now: float) -> None:
        """Take note of the hosts that a filter has left to a VM, if these are few."""
        if len(hosts) <= _FEW_HOSTS:
            with self._lock:
                self._start(vm, unit, now).left[unit] = tuple(hosts)

    @property
    def has_news(self) -> bool:
        """Whether something was accepted that no guess counts with yet."""
        with self._lock:
            return any(start.open for start in self._starts.values())

    def over(self, base: Snapshot, as_of: float, now: float, asked: str | None = None) -> Snapshot:
        """Return a snapshot, which was true at a moment, with what is expected as `pending`.

        What was found of a VM that is `asked` about is not looked at yet: it is being decided where it goes.
        """
        with self._lock:
            for name, start in tuple(self._starts.items()):
                vm = base.vm_by_id.get(name)
                is_settled = vm is not None and _is_settled(vm, start, as_of)
                if is_settled or now - start.at > self._longest_seconds:
                    del self._starts[name]
                elif start.open and vm is not None and name != asked:
                    start.guess = None  # as if nothing had been decided about it before
                    start.guess, start.open = self._guess(base, vm, start), False
            return self._current(base)

    def heard(self, vm: str, host: str | None, before: float, now: float) -> None:
        """Take what an event reports of a VM after a decision: its host, or no start."""
        with self._lock:
            start = self._starts.get(vm)
            if start is None or start.at > before or (host is not None and host == start.guess):
                return
            del self._starts[vm]
            if host is not None:
                self._starts[vm] = _Start(start.present, now, known=host)

    def _start(self, vm: Vm, unit: str, now: float) -> _Start:
        """The decision about a VM that is under way."""
        start = self._starts.pop(vm.id, None)
        if start is None or now - start.at > _ONE_CALL_SECONDS or unit in start.ranks or unit in start.left:
            start = _Start(vm.host, now)
        self._starts[vm.id] = start
        start.at, start.open = now, True
        return start

    def _guess(self, base: Snapshot, vm: Vm, start: _Start) -> str | None:
        """The one host that is left, else the best by our weights and the engine's."""
        if start.known is not None:
            return start.known
        offered = [set(hosts) for hosts, _, _ in start.ranks.values()] + [*map(set, start.left.values())]
        both = set.intersection(*offered) if offered else set()
        first = next((hosts for hosts, _, _ in start.ranks.values()), tuple(sorted(both)))
        hosts = [host for host in first if host in both and host in base.host_by_id]
        if len(hosts) == 1:
            return hosts[0]
        if not hosts or not start.ranks:
            return None
        ours = [0] * len(hosts)
        for asked, ranks, factor in start.ranks.values():
            rank = dict(zip(asked, ranks, strict=True))
            ours = list(map(add, ours, points_of([rank[host] for host in hosts], factor)))
        best, *others = nlargest(2, ours)
        policy = base.cluster_by_id[vm.cluster].policy
        if best - others[0] > sum(policy.values()) * (len(hosts) - 1):
            return hosts[ours.index(best)]
        return self._as_the_engine_chooses(base, vm, start, self._few(base, hosts, ours))

    def _few(self, base: Snapshot, hosts: Sequence[str], ours: Sequence[int]) -> Sequence[str]:
        """Of many hosts those among which the engine is likely to choose: all would take too long."""
        if len(hosts) <= _MANY_HOSTS:
            return hosts
        best, promised = max(ours), self._promised(base)
        tied = [base.host_by_id[host] for host, points in zip(hosts, ours, strict=True) if points == best]
        by_memory = nlargest(_MANY_HOSTS // 2, tied, lambda host: host.free_mb - promised[host.id])
        by_cpu = nsmallest(_MANY_HOSTS // 2, tied, lambda host: host.cpu_percent or 0)
        few = {host.id for host in (*by_memory, *by_cpu)}
        return [host for host in hosts if host in few]

    def _as_the_engine_chooses(self, base: Snapshot, vm: Vm, start: _Start, hosts: Sequence[str]) -> str:
        cluster, laid = base.cluster_by_id[vm.cluster], self._current(base)
        ids = {} if cluster.scheduling_policy is None else cluster.scheduling_policy.unit_ids
        weights: dict[str | None, Mapping[str, int]] = {}
        factors: dict[str, int] = {}
        for unit, (asked, ranks, factor) in start.ranks.items():
            name = ids.get(unit) or unit
            weights[name], factors[name] = dict(zip(asked, ranks, strict=True)), factor
        request = Request((vm.id,), tuple(hosts), parameters=cluster.scheduling_properties)
        for weight in ENGINES_WEIGHTS:
            if factor := cluster.policy.get(weight.name, 0):
                name = ids.get(weight.name) or weight.unit
                of_memory = weight.name == _EVEN_MEMORY
                factors[name] = factor
                weights[name] = (
                    self._by_memory(base, vm, hosts) if of_memory else weight.scores(laid, request)
                )
        return order_hosts(hosts, weights, factors)[0].host

    def _by_memory(self, base: Snapshot, vm: Vm, hosts: Sequence[str]) -> dict[str, int]:
        """What the engine's even distribution of memory says, which deducts what is expected on hosts."""
        promised = self._promised(base)
        free = {host: base.host_by_id[host].free_mb - promised[host] for host in hosts}
        most, needed = max(free.values()), required_mb(vm)
        return {host: memory_score(mb, most, 0 if host == vm.host else needed) for host, mb in free.items()}

    def _promised(self, base: Snapshot) -> Counter[str]:
        """Memory that VMs take which are expected on a host, in MiB."""
        promised: Counter[str] = Counter()
        for vm, host in self._expected(base):
            promised[host] += required_mb(vm)
        return promised

    def _expected(self, base: Snapshot) -> Iterator[tuple[Vm, str]]:
        """The VMs that are expected on a host; of those that the enforcer moves more is known."""
        meant = {entry.vm for entry in base.pending}
        for name, start in self._starts.items():
            vm = base.vm_by_id.get(name)
            if vm is None or name in meant:
                continue
            if start.guess is None or start.guess == vm.host:
                continue
            yield vm, start.guess

    def _current(self, base: Snapshot) -> Snapshot:
        """The base with what is expected by now."""
        pending = tuple(
            Pending(vm.id, host, vm.memory_mb, expected=True) for vm, host in self._expected(base)
        )
        if not pending:
            self._base, self._laid = base, None
            return base
        before, same_base = self._laid, self._base is base
        whole = base.pending + pending
        if before is not None and same_base and before.pending == whole:
            return before
        if before is not None and same_base:
            differing = {entry.vm for entry in {*before.pending} ^ {*whole}}
            laid = with_more_pending(base, pending, like=before, differing=differing)
        else:
            laid = with_more_pending(base, pending, like=base, differing={entry.vm for entry in pending})
            if before is not None:
                share(laid, like=before)
        self._base, self._laid = base, laid
        return laid


def _is_settled(vm: Vm, start: _Start, as_of: float) -> bool:
    """Whether the engine shows where the VM is by now, or that nothing came of the decision."""
    if vm.migrating_to is not None or (vm.host is not None and vm.host != start.present):
        return True
    return _rests(vm) and as_of > start.at + _SHOWN_AFTER_SECONDS


def _rests(vm: Vm) -> bool:
    return vm.status in RESTING_STATUSES or vm.status == "up"


#: After an answer that did not come in time, the engine is not waited for again so soon.
_LATE_SECONDS = 3.0
_MS = 1000.0


class NoSnapshot(UserError):
    """Nothing fresh enough is known of the engine, and nothing came in time."""


class Awaited(NoSnapshot):
    """The engine is being asked for the VM: an answer will be known in a moment."""


class Base(NamedTuple):
    """The engine's state with the open intents of the store, and without what is expected."""

    snapshot: Snapshot
    #: The moment at which it was true.
    as_of: float
    #: Whether it is what a service had saved before it started again, and nothing was read since.
    saved: bool = False


class Source(Protocol):
    """Where the state is from: the service that follows the engine, or a reading of the engine itself."""

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        """The state, no older than `max_age` seconds; `until` is a moment of `time.monotonic`.

        With `vm`, the engine was asked for it lately; who is not `patient` does not wait for that: raises
        `Awaited` at once. Raises `NoSnapshot` if nothing comes in time.
        """

    def as_of(self) -> float | None:
        """The moment at which what was read last was true; None if that is nothing."""

    def last(self) -> Base | None:
        """What was known last, however old; None if that is nothing. It looks into the store."""


@dataclass(frozen=True)
class Decision:
    """The state of the engine that one question is decided on."""

    base: Base
    accepted: Accepted
    #: The VM that is decided about, if it is one.
    asked: str | None = None
    #: Whether the engine is asked for it.
    awaited: bool = False

    @property
    def confirmed(self) -> Snapshot:
        """What the engine has shown, and what the enforcer has begun: filters go by it."""
        return self.base.snapshot

    @cached_property
    def snapshot(self) -> Snapshot:
        """The same with the placements that are expected: weights go by it."""
        return self.accepted.over(self.base.snapshot, self.base.as_of, now(), self.asked)

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not in it."""
        return max(0.0, now() - self.base.as_of)


class Decisions:
    """The states that one process decides on; for any thread."""

    def __init__(self, source: Source, settings: InventorySettings) -> None:
        self.accepted = Accepted(settings.expected_seconds)
        self._source = source
        self._settings = settings
        #: Of which moment, until when, and why a fresher state is not waited for.
        self._late: tuple[float | None, float, str] = (None, 0.0, "")

    def about(self, asked: str | None = None, *, patient: bool, first_seconds: float) -> Decision:
        """Return what is known of the engine, waiting for it no longer than `engine_wait_ms`.

        `asked` is the VM that is decided about, if it is one; if it is not known, the engine is asked for it,
        and who is not `patient` does not wait for that. Where nothing was read yet, there is at most what a
        service had saved before it started again: it waits up to `first_seconds`, if that is longer.

        Raises `NoSnapshot` if nothing that is known is young enough.
        """
        found = self._about(asked, None, patient, first_seconds)
        if asked is None or asked in found.confirmed.vm_by_id:
            return found
        return self._about(asked, asked, patient, first_seconds)

    def _about(self, asked: str | None, unknown: str | None, patient: bool, first_seconds: float) -> Decision:
        began, as_of = time.monotonic(), self._source.as_of()
        usual = self._settings.engine_wait_ms / _MS
        patience = max(usual, first_seconds) if as_of is None else usual
        late_of, until, why = self._late
        if late_of == as_of and began < until:
            last = self._source.last()
            if last is None or unknown is None or unknown in last.snapshot.vm_by_id:
                return Decision(self._checked(last, NoSnapshot(why)), self.accepted, asked)
        try:
            base = self._source.base(
                self._settings.max_age_seconds, began + patience, unknown, patient=patient
            )
        except Awaited as error:
            return Decision(self._checked(self._source.last(), error), self.accepted, asked, awaited=True)
        except NoSnapshot as error:
            self._late = as_of, time.monotonic() + _LATE_SECONDS, str(error)
            base = self._checked(self._source.last(), error)
        return Decision(base, self.accepted, asked)

    def _checked(self, last: Base | None, error: NoSnapshot) -> Base:
        """Raises the error if there is no last state, or if that is too old."""
        if last is None or now() - last.as_of > self._settings.longest_age_seconds:
            raise error
        return last
