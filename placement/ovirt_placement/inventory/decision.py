"""What a policy unit decides on: what the engine has shown, and what was accepted a moment ago."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import add
from typing import NamedTuple, Protocol

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.stored import Overlay
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


class _Ranked(NamedTuple):
    """What a weight has said of hosts, or with factor 0 a filter, which prefers none of those it leaves."""

    hosts: tuple[str, ...]
    ranks: Sequence[int]
    factor: int


@dataclass
class _Start:
    """One decision about a VM: where it was, and what our units have found since."""

    present: str | None
    at: float
    #: By unit; of filters those that left few hosts.
    found: dict[str, _Ranked] = field(default_factory=dict)
    #: Evidence, where there is some.
    known: str | None = None
    guess: str | None = None
    #: Whether there is something that the guess does not count with.
    open: bool = True

    def is_settled(self, vm: Vm, as_of: float) -> bool:
        """Whether the engine shows where the VM is by now, or that nothing came of the decision."""
        if vm.migrating_to is not None or (vm.host is not None and vm.host != self.present):
            return True
        return (vm.status in RESTING_STATUSES or vm.status == "up") and as_of > self.at + _SHOWN_AFTER_SECONDS


class Accepted:
    """What was accepted within the last seconds, for all threads of the process that decides."""

    def __init__(self, longest_seconds: float) -> None:
        """After `longest_seconds` nothing is expected any more of a decision."""
        self._longest_seconds = longest_seconds
        self._lock = threading.Lock()
        #: By VM, the earliest decision first: each knew of the ones before.
        self._starts: dict[str, _Start] = {}
        self._overlay = Overlay()

    def leave_ranks(
        self, unit: str, vm: Vm, hosts: tuple[str, ...], ranks: Sequence[int], factor: int, now: float
    ) -> None:
        """Take note of the ranks that a weight has given to hosts for a VM: one of them will be chosen."""
        with self._lock:
            start = self._starts.pop(vm.id, None)
            if start is None or now - start.at > _ONE_CALL_SECONDS or unit in start.found:
                start = _Start(vm.host, now)
            self._starts[vm.id] = start
            start.found[unit] = _Ranked(hosts, ranks, factor)
            start.at, start.open = now, True

    def leave_accepted(self, unit: str, vm: Vm, hosts: Sequence[str], now: float) -> None:
        """Take note of the hosts that a filter has left to a VM, if these are few."""
        if len(hosts) <= _FEW_HOSTS:
            self.leave_ranks(unit, vm, tuple(hosts), [0] * len(hosts), 0, now)

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
                is_settled = vm is not None and start.is_settled(vm, as_of)
                if is_settled or now - start.at > self._longest_seconds:
                    del self._starts[name]
                elif start.open and vm is not None and name != asked:
                    start.guess = None  # as if nothing had been decided about it before
                    start.guess, start.open = self._guess(base, vm, start), False
            return self._overlay.over(base, self._expected(base))

    def heard(self, vm: str, host: str | None, before: float, now: float) -> None:
        """Take what an event reports of a VM after a decision: its host, or no start."""
        with self._lock:
            start = self._starts.get(vm)
            if start is None or start.at > before or (host is not None and host == start.guess):
                return
            del self._starts[vm]
            if host is not None:
                self._starts[vm] = _Start(start.present, now, known=host)

    def _guess(self, base: Snapshot, vm: Vm, start: _Start) -> str | None:
        """The one host that is left, else the best by our weights and the engine's."""
        if start.known is not None:
            return start.known
        offers = sorted(start.found.values(), key=lambda said: said.factor, reverse=True)
        left = set.intersection(base.host_by_id.keys() & offers[0].hosts, *(said.hosts for said in offers))
        if len(left) < 2 or not offers[0].factor:  # filters alone do not say which of several
            return next(iter(left)) if len(left) == 1 else None
        promised: Counter[str] = Counter()
        for one in self._expected(base):
            promised[one.host] += required_mb(base.vm_by_id[one.vm])
        hosts = [host for host in offers[0].hosts if host in left]
        free = {host: base.host_by_id[host].free_mb - promised[host] for host in hosts}
        if len(hosts) > _MANY_HOSTS:
            points = [0] * len(hosts)
            for said in offers:
                rank = dict(zip(said.hosts, said.ranks, strict=True))
                points = list(map(add, points, points_of([rank[host] for host in hosts], said.factor)))
            few = nlargest(_MANY_HOSTS, zip(points, free.values(), hosts, strict=True))
            left = {host for _, _, host in few}
        return self._as_the_engine_chooses(
            base, vm, start, {host: free[host] for host in hosts if host in left}
        )

    def _as_the_engine_chooses(
        self, base: Snapshot, vm: Vm, start: _Start, free_mb: Mapping[str, int]
    ) -> str:
        """By our weights and the engine's, of which that by memory deducts what is expected on hosts."""
        cluster, laid = base.cluster_by_id[vm.cluster], self._overlay.over(base, self._expected(base))
        ids = {} if cluster.scheduling_policy is None else cluster.scheduling_policy.unit_ids
        weights: dict[str | None, Mapping[str, int]] = {}
        factors: dict[str, int] = {}
        for unit, said in start.found.items():
            if said.factor:
                name = ids.get(unit) or unit
                ranks = zip(said.hosts, said.ranks, strict=True)
                weights[name] = {host: rank for host, rank in ranks if host in free_mb}
                factors[name] = said.factor
        request = Request((vm.id,), tuple(free_mb), parameters=cluster.scheduling_properties)
        most, needed = max(free_mb.values()), required_mb(vm)
        for weight in ENGINES_WEIGHTS:
            if factor := cluster.policy.get(weight.name, 0):
                name = ids.get(weight.name) or weight.unit
                factors[name] = factor
                weights[name] = (
                    {
                        one: memory_score(mb, most, 0 if one == vm.host else needed)
                        for one, mb in free_mb.items()
                    }
                    if weight.name == _EVEN_MEMORY
                    else weight.scores(laid, request)
                )
        return order_hosts(request.candidate_hosts, weights, factors)[0].host

    def _expected(self, base: Snapshot) -> tuple[Pending, ...]:
        """The VMs that are expected on a host; of those that the enforcer moves more is known."""
        meant = {entry.vm for entry in base.pending}
        return tuple(
            Pending(name, start.guess, vm.memory_mb, expected=True)
            for name, start in self._starts.items()
            if (vm := base.vm_by_id.get(name)) is not None
            and name not in meant
            and start.guess is not None
            and start.guess != vm.host
        )


#: After an answer that did not come in time, the engine is not waited for again so soon.
_LATE_SECONDS = 3.0
#: So long is waited for a state where none is known yet.
FIRST_SECONDS = 1.0
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
    #: Whether the engine is being asked for the VM, which is not in it, and has not answered.
    awaited: bool = False

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not in it."""
        return max(0.0, now() - self.as_of)


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


class Decisions:
    """The states that one process decides on; for any thread."""

    def __init__(
        self, source: Source, settings: InventorySettings, first_seconds: float = FIRST_SECONDS
    ) -> None:
        self.accepted = Accepted(settings.expected_seconds)
        self._source, self._settings, self._first_seconds = source, settings, first_seconds
        #: Of which moment, until when, and why a fresher state is not waited for.
        self._late: tuple[float | None, float, str] = (None, 0.0, "")

    def about(self, asked: str | None = None, *, patient: bool) -> Base:
        """Return what is known of the engine, waiting for it no longer than `engine_wait_ms`.

        `asked` is the VM that is decided about, if it is one; if it is not known, the engine is asked for it,
        and who is not `patient` does not wait for that. Where nothing was read yet, there is at most what a
        service had saved before it started again: it waits for the first state, if that is longer.

        Raises `NoSnapshot` if nothing that is known is young enough.
        """
        base = self._base(None, patient)
        if asked is None or asked in base.snapshot.vm_by_id:
            return base
        return self._base(asked, patient)

    def _base(self, unknown: str | None, patient: bool) -> Base:
        began, as_of = time.monotonic(), self._source.as_of()
        late_of, until, why = self._late
        error = NoSnapshot(why)
        if unknown is not None or late_of != as_of or began >= until:
            usual = self._settings.engine_wait_ms / _MS
            ends = began + (max(usual, self._first_seconds) if as_of is None else usual)
            try:
                return self._source.base(self._settings.max_age_seconds, ends, unknown, patient=patient)
            except NoSnapshot as raised:
                error = raised
                if not isinstance(raised, Awaited):
                    self._late = as_of, time.monotonic() + _LATE_SECONDS, str(raised)
        last = self._source.last()
        if last is None or last.age_seconds > self._settings.longest_age_seconds:
            raise error
        return last._replace(awaited=unknown is not None)
