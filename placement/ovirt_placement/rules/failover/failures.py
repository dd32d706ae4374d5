"""Judges every set of hosts that may fail together, the small ones first, by whatever measure.

A set that contains one that is lost is not looked at again. Nor is one that falls into parts that do not
meet: what each reckons with (its own hosts, the homes of its VMs, and the other ends of migrations from and
to its hosts) no other VM does. Then each part has its starts as if it had failed alone. Affinity does not
matter: what gathers a VM at its home survives, since the home does; failing hosts hold no negative peers
any more; and VMs on different homes are apart. So only sets whose parts meet are looked at.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, islice
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.constraints import asks_by_vm, block_of
from ovirt_placement.rules.elements.assignment import NOTHING
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.failover.measures import Examiner, Measure, examine, one_by_one
from ovirt_placement.rules.failover.outcomes import (
    Chosen,
    FailureUnit,
    Loss,
    Outcome,
    Proven,
    Size,
    Survival,
    Tight,
    Unknown,
    failing_domains,
    failing_hosts,
    protected,
    sets_without,
    single_hosts,
)

#: Sizes of VMs that are counted in, the largest ones; and sets of hosts that VMs are restricted to.
_MOST_SIZES = 6
_MOST_AREAS = 50
#: How many sets are looked for.
MOST_SETS = 40


class Scant(NamedTuple):
    """A set of units by number, and for how many more VMs that need this many MiB it leaves room, at most."""

    room_for: int
    memory_mb: int
    chosen: Chosen


def scantest(
    snapshot: Snapshot, hosts: Sequence[str], units: Sequence[FailureUnit], size: int
) -> list[Scant]:
    """The sets of this many units that leave the least room by some count, the worst first."""
    vms = protected(snapshot, hosts)
    needs = {vm: required_mb(snapshot.vm_by_id[vm]) for own in vms.values() for vm in own}
    areas = _areas(snapshot, frozenset(hosts), [*needs])
    found: dict[Chosen, Scant] = {}
    for area, inside in areas:
        sizes = sorted({needs[vm] for vm in inside} - {0}, reverse=True)[:_MOST_SIZES]
        for memory_mb in sizes:
            asking = {vm for vm in inside if needs[vm] >= memory_mb}
            up = [known for host in area if (known := snapshot.host_by_id[host]).up]
            room = {host.id: max(0, host.free_mb) // memory_mb for host in up}
            brings = {host: sum(vm in asking for vm in vms[host]) for host in hosts}
            costs = [sum(room.get(host, 0) + brings[host] for host in unit.hosts) for unit in units]
            bringing = {at for at, unit in enumerate(units) if any(brings[host] for host in unit.hosts)}
            for chosen in _worst(costs, bringing, size):
                failed = failing_hosts(units, chosen)
                left = sum(room.values()) - sum(room.get(host, 0) + brings[host] for host in failed)
                scant = Scant(left, memory_mb, chosen)
                found[chosen] = min(found.get(chosen, scant), scant)
    return sorted(found.values())[:MOST_SETS]


def _areas(
    snapshot: Snapshot, hosts: frozenset[str], vms: Sequence[str]
) -> Iterator[tuple[frozenset[str], list[str]]]:
    """Hosts that VMs are restricted to, the smallest first, and at last all; with the VMs inside of each."""
    own: dict[str, frozenset[str]] = {}
    for vm in vms:
        block = block_of(snapshot, (vm,), asks_by_vm(snapshot), NOTHING)
        own[vm] = (hosts if block.allowed is None else hosts & block.allowed) - block.forbidden
    areas = sorted(set(own.values()) - {hosts}, key=lambda area: (len(area), sorted(area)))[:_MOST_AREAS]
    for area in (*areas, hosts):
        yield area, [vm for vm in vms if own[vm] <= area]


def _worst(costs: Sequence[int], bringing: AbstractSet[int], size: int) -> Iterator[Chosen]:
    """The members that cost most; then each with the last one given for another.

    One of them at least must bring VMs: the others only take room away.
    """
    order = sorted(range(len(costs)), key=lambda number: (-costs[number], number))
    first, others = order[: size - 1], order[size - 1 :]
    next_bringing = [number for number in others if number in bringing][:1]
    for last in dict.fromkeys((*others[:4], *next_bringing)):
        if last in bringing or not bringing.isdisjoint(first):
            yield tuple(sorted((*first, last)))


def _other_ends(snapshot: Snapshot) -> dict[str, set[str]]:
    """By host that VMs are on their way from or to, the hosts at the other ends."""
    found: dict[str, set[str]] = {}
    for vm, targets in snapshot.pending_hosts.items():
        known = snapshot.vm_by_id.get(vm)
        ends = {*targets} if known is None or known.host is None else {*targets, known.host}
        for end in ends:
            found.setdefault(end, set()).update(ends)
    return found


def judge_failures(
    snapshot: Snapshot,
    measure: Measure,
    failures: int,
    steps: int,
    *,
    units: Sequence[FailureUnit] | None = None,
    examiner: Examiner | None = None,
    tightest: bool = False,
) -> Proven:
    """Judge every set of at most this many units (by default the hosts); the steps bound the work.

    What they leave open is counted, never guessed; with `tightest`, the worst sets are then looked for. The
    answer is the same with any examiner.
    """
    sweep = Sweep(snapshot, measure, failures, steps, units, examiner)
    return sweep.proven(sweep.judge_tightest() if tightest and sweep.open else ())


class Sweep:
    """Every set of at most this many units (by default the hosts), judged as far as the steps suffice."""

    def __init__(
        self,
        snapshot: Snapshot,
        measure: Measure,
        failures: int,
        steps: int,
        units: Sequence[FailureUnit] | None = None,
        examiner: Examiner | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._measure = measure
        self.failures = failures
        self.units = single_hosts(measure.hosts) if units is None else units
        self._steps = steps
        self.left = steps
        self._examiner = examiner or one_by_one(measure, steps)
        self._number = {host: number for number, host in enumerate(measure.hosts)}
        self._other_ends = _other_ends(snapshot)
        #: Of sets that were looked at and not lost, by size: what they reckon with, as bits.
        self._reach: list[dict[Chosen, int]] = [{}]
        #: Of those that were looked at; all others that are survived fall into parts that do not meet.
        self.survivals: dict[Chosen, Survival] = {}
        self.losses: dict[Chosen, Loss] = {}
        self._unknown: dict[Chosen, Unknown] = {}
        #: The sets that were left unjudged, by size; None where it is not known which of them need be judged.
        self.open: dict[int, tuple[Chosen, ...] | None] = {}
        self._judge()

    @property
    def safe(self) -> bool | None:
        """Whether every set is survived; None if that is not known."""
        return False if self.losses else True if self.ended else None

    @property
    def ended(self) -> bool:
        """Whether all is known of every set that contains no smaller one which is lost."""
        return not (self._unknown or self.open)

    def _judge(self) -> None:
        """Judge the sets of a size if all smaller ones have been."""
        vms = sum(len(self._measure.vms_on(unit.hosts)) for unit in self.units)
        for size in range(1, self.failures + 1):
            if self.open:
                self.open[size] = None
                continue
            # This many sets are more than the steps that are left suffice for.
            most = max(len(self.units), self.left // (1 + size * vms // max(1, len(self.units)))) + 1
            meeting = sorted(islice(self._meeting(size), most))
            self._reach.append({})
            judged = 0
            for chosen, outcome in self._examine(meeting):
                judged += 1
                self._add_outcome(chosen, outcome)
            if len(meeting) == most:
                self.open[size] = None
            elif judged < len(meeting):
                self.open[size] = tuple(meeting[judged:])

    def judge_tightest(self) -> tuple[Tight, ...]:
        """Judge the largest sets that leave the least room; what is lost is reported with the others.

        Each may take its share of as many steps again.
        """
        found = []
        for room_for, memory_mb, chosen in scantest(
            self._snapshot, self._measure.hosts, self.units, min(self.failures, len(self.units))
        ):
            outcome = self._worst_of(chosen)
            survived = None if isinstance(outcome, Unknown) else isinstance(outcome, Survival)
            found.append(Tight(outcome.hosts, room_for, memory_mb, survived, outcome.domains))
        return tuple(found)

    def proven(self, tightest: tuple[Tight, ...]) -> Proven:
        sizes = tuple(map(self._counted, range(1, self.failures + 1)))
        return Proven(
            safe=self.safe,
            losses=tuple(self.losses[one] for one in sorted(self.losses, key=lambda one: (len(one), one))),
            unknown=tuple(self._unknown.values()),
            survived=sum(size.survived for size in sizes),
            unjudged=sum(size.unjudged for size in sizes),
            survivals=tuple(one for chosen, one in self.survivals.items() if len(chosen) == 1),
            sizes=sizes if self.failures > 1 else (),
            tightest=tightest,
        )

    def _counted(self, size: int) -> Size:
        """What is proven of the sets of one size that contain no smaller one that is lost."""
        units = len(self.units)
        smaller = [one for one in self.losses if len(one) < size]
        whole = sets_without(units, size, smaller)
        reported = sum(len(one) == size for one in (*self.losses, *self._unknown))
        left = self.open.get(size, ())
        if left is not None:
            unjudged = sum(not self._contains_loss(one) and one not in self.losses for one in left)
            return Size(size, max(0, whole - reported - unjudged), unjudged)
        apart = sets_without(units, size, (*smaller, *self._not_apart()))
        survived = min(whole, apart + sum(len(one) == size > 1 for one in self.survivals))
        return Size(size, survived, max(0, whole - survived - reported))

    def _examine(self, meeting: Sequence[Chosen]) -> Iterator[tuple[Chosen, Outcome]]:
        """What came of the sets, in their order, until the steps end."""
        failures = (failing_hosts(self.units, chosen) for chosen in meeting)
        for chosen, examined in zip(meeting, self._examiner(failures), strict=False):
            self.left -= examined.steps
            if self.left < 0:
                return
            yield chosen, self._named(chosen, examined.outcome)

    def _named(self, chosen: Chosen, outcome: Outcome) -> Outcome:
        domains = failing_domains(self.units, chosen)
        return replace(outcome, domains=domains) if domains else outcome

    def _add_outcome(self, chosen: Chosen, outcome: Outcome) -> None:
        if isinstance(outcome, Loss):
            self.losses[chosen] = outcome
            return
        if isinstance(outcome, Unknown):
            self._unknown[chosen] = outcome
        else:
            self.survivals[chosen] = outcome
        self._reach[len(chosen)][chosen] = self._reached(outcome)

    def _reached(self, outcome: Survival | Unknown) -> int:
        """The failing hosts, the homes of their VMs, and the other ends of migrations from and to them.

        Everything, where that is not known, or starts have to do with each other wherever they are.
        """
        if isinstance(outcome, Unknown) or not self._measure.separable:
            return (1 << len(self._number)) - 1
        ends = (end for host in outcome.hosts for end in self._other_ends.get(host, ()))
        reached = {*outcome.hosts, *outcome.homes.values(), *ends}
        return sum(1 << self._number[host] for host in reached if host in self._number)

    def _meeting(self, size: int) -> Iterator[Chosen]:
        """Sets whose parts meet, each once."""
        if size == 1:
            yield from ((number,) for number in range(len(self.units)))
            return
        found: set[Chosen] = set()
        for larger in range(size - 1, (size - 1) // 2, -1):
            for part, reach in self._reach[larger].items():
                near = (other for other, its in self._reach[size - larger].items() if its & reach)
                for other in near:
                    chosen = tuple(sorted({*part, *other}))
                    if len(chosen) == size and chosen not in found and not self._contains_loss(chosen):
                        found.add(chosen)
                        yield chosen

    def _not_apart(self) -> Iterator[Chosen]:
        """Units, and pairs of them, of which it is not known that they fall into parts that do not meet."""
        reach = self._reach[1]
        for number in range(len(self.units)):
            if (number,) not in self.survivals and (number,) not in self.losses:
                yield (number,)
        for one, other in combinations(sorted(reach), 2):
            if reach[one] & reach[other]:
                yield (*one, *other)

    def _contains_loss(self, chosen: Chosen) -> bool:
        """Whether a smaller set is lost already."""
        sizes = range(1, len(chosen)) if self.losses else ()
        return any(smaller in self.losses for size in sizes for smaller in combinations(chosen, size))

    def _worst_of(self, chosen: Chosen) -> Outcome:
        """What comes of a set; if it is lost, take the smallest set in it that is."""
        known = next((one for one in self.losses if set(one) <= set(chosen)), None)
        outcome = self.losses[known] if known else self._judge_set(chosen)
        if not isinstance(outcome, Loss):
            return outcome
        if known is None:
            smallest, loss = self._shrunk(chosen, outcome)
            self.losses[smallest] = loss
        return self._named(chosen, replace(outcome, hosts=failing_hosts(self.units, chosen)))

    def _shrunk(self, chosen: Chosen, loss: Loss) -> tuple[Chosen, Loss]:
        for member in chosen:
            smaller = tuple(one for one in chosen if one != member)
            outcome = self._judge_set(smaller) if smaller else None
            if isinstance(outcome, Loss):
                return self._shrunk(smaller, outcome)
        return chosen, loss

    def _judge_set(self, chosen: Chosen) -> Outcome:
        failed = failing_hosts(self.units, chosen)
        return self._named(chosen, examine(self._measure, failed, self._steps // MOST_SETS).outcome)
