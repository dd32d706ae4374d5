"""Whether the highly available VMs of a cluster survive the failure of any few hosts, exactly.

"Safe" means that starts are let through: for every failure there is an order of starts of which each passes
every filter. "Unsafe" means that there is none. What the engine's own check would say, were it exact, is
another question.

Homes are found under memory, hard affinity and pinning, and held against the filters in order. Where these
refuse one, what they leave open is asked, then every order of starts is tried. So "survived" comes with
starts that all filters let through, and "lost" is proven.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType

from msgspec.structs import asdict, replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.doubts import doubt, under_way
from ovirt_placement.rules.elements.assignment import (
    Block,
    Budget,
    BudgetSpentError,
    Hosts,
    Resources,
    even_fit,
)
from ovirt_placement.rules.elements.placement import LEAVABLE, World, given_back
from ovirt_placement.rules.elements.resources import huge_page_kib, overhead_mb, required_mb
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.measures import (
    SEARCH_BUDGET,
    Arithmetic,
    Examiner,
    Measure,
    examine,
    home_of_each,
)
from ovirt_placement.rules.failover.outcomes import (
    NOWHERE,
    Domain,
    FailureUnit,
    Loss,
    Lost,
    Outcome,
    Outside,
    Proven,
    Survival,
    Unknown,
    find_lost,
    find_outside,
    may_fail,
    single_hosts,
    whole_domains,
)
from ovirt_placement.rules.failover.restart_check import RestartCheck, restart_order

_NOTHING_TAKEN: Mapping[str, Block] = MappingProxyType({})
#: `max` or `min`.
_Pick = Callable[..., str]


class Starts(Measure):
    """A failure is survived if there is an order of starts of which each passes every filter."""

    def __init__(self, snapshot: Snapshot, cluster_id: str, *, everywhere: bool = False) -> None:
        """With `everywhere`, hosts that do not answer and have VMs may fail as well, and `NOWHERE`.

        So may those of them that VMs are on their way to: these will not arrive.
        """
        hosts = snapshot.hosts_of_cluster.get(cluster_id, ())
        up = [host for host in hosts if host.up]
        failing = set(may_fail(snapshot, cluster_id))
        if everywhere:
            silent = {host.id for host in hosts if host.status not in LEAVABLE}
            failing |= silent.intersection(snapshot.vms_of_host)
            failing |= silent.intersection(one.host for one in snapshot.pending)
            failing |= silent.intersection(one.migrating_to for one in snapshot.vms)
        self.restart_check = RestartCheck(snapshot, cluster_id)
        super().__init__(
            snapshot,
            (host.id for host in hosts if host.id in failing),
            {host.id: Resources(host.free_mb) for host in up},
        )
        self._homes = tuple(self._rooms)
        self._order = restart_order(snapshot)
        #: Two failures at once are in the order of both; rules may ask for one that neither has alone.
        self.separable = self.restart_check.nearby and (self.restart_check.plain or not self._order.by_rules)
        self._pages = any(host.free_huge_pages for host in up)
        if everywhere:
            # A host that answers may have one, too, of which nothing is known.
            lost = find_lost(snapshot, cluster_id)
            self._vms[NOWHERE] = tuple(
                one.vm for one in lost if one.host_status in LEAVABLE or one.host not in self._vms
            )

    def spread(self, failed: tuple[str, ...], taken: Mapping[str, Block] = _NOTHING_TAKEN) -> Survival | None:
        """Evacuate hosts so that as much as can be stays free on each of the others; None if that fails.

        Of hosts in `taken` something is taken already, as if that block were there.
        """
        left, settled = self._left(failed)
        blocks = self._blocks_of(failed)
        for host, block in taken.items():
            if host in left:
                left[host] = left[host].without(block.need)
                blocks = tuple(
                    one if one.apart.isdisjoint(block.apart) else one.narrowed(None, frozenset({host}))
                    for one in blocks
                )
        homes = even_fit(blocks, left)
        if homes is None:
            return None
        found = self._in_order(home_of_each(blocks, homes))
        agreed = self.restart_check.passes(frozenset(failed), found, settled=settled)
        return Survival(failed, found) if agreed else None

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        """Judge one failure. Raises `BudgetSpentError`."""
        gone = frozenset(failed)
        left, settled = self._left(failed)
        for blocks in self._narrower(failed, left, budget):
            outcome = self._fitted(failed, blocks, left, budget)
            if not isinstance(outcome, Survival):
                return outcome
            homes = self._in_order(outcome.homes)
            if self.restart_check.passes(gone, homes, settled=settled):
                return Survival(failed, homes)
        return self._try_all(failed, tuple(left), budget)

    def start_in_turn(self, failed: tuple[str, ...]) -> dict[str, str]:
        """Homes of the VMs that find one when each starts in its turn, by the better of two ways.

        The large ones first, each where most memory is free; or the small ones, where the least is.
        """
        vms = sorted(self.vms_on(failed))
        sizes = {vm: required_mb(self._snapshot.vm_by_id[vm]) for vm in vms}
        large_first = self._started(failed, sorted(vms, key=lambda vm: -sizes[vm]), max)
        small_first = self._started(failed, sorted(vms, key=sizes.__getitem__), min)
        return max(large_first, small_first, key=len)

    def _started(self, failed: tuple[str, ...], vms: Sequence[str], pick: _Pick) -> dict[str, str]:
        state, homes = self.restart_check.failure_state(frozenset(failed)), dict[str, str]()
        left = [host for host in self._homes if host not in failed]
        for vm in self._order.ordered(vms):
            if accepted := self.restart_check.accepted(state, (vm,), left):
                homes[vm] = pick(accepted, key=lambda host: (state.host_by_id[host].free_mb, host))
                state = World(state).starting(vm, homes[vm]).snapshot
        return homes

    def _left(self, failed: tuple[str, ...]) -> tuple[dict[str, Resources], bool]:
        """What other hosts may hand out, and whether nothing was on its way from or to the failed ones."""
        ways = self._snapshot.pending_hosts
        lost = [vm.id for host in failed for vm in self._snapshot.vms_of_host.get(host, ()) if vm.id in ways]
        left = self._without(failed)
        for host, memory in given_back(self._snapshot, lost).items() if lost else ():
            if host in left:
                left[host] = Resources(left[host].memory + memory)
        return left, not lost and all(set(failed).isdisjoint(targets) for targets in ways.values())

    def _narrower(self, failed: tuple[str, ...], left: Hosts, budget: Budget) -> Iterator[tuple[Block, ...]]:
        """The VMs to start as blocks; then with the hosts that filters leave them: that costs more to ask."""
        gone, vms, hosts = frozenset(failed), self.vms_on(failed), tuple(left)
        blocks = self._blocks_of(failed)
        yield blocks
        asked = self.restart_check
        yield tuple(_narrowed(block, asked.open_to) for block in blocks)
        budget.spend(len(vms) * len(hosts))
        state, others = asked.failure_state(gone), frozenset(vms)
        yield tuple(
            _narrowed(block, lambda vm: asked.ever_open_to(state, vm, hosts, others)) for block in blocks
        )

    def _need_of(self, vm: Vm) -> Resources:
        """What it asks for at least: the filter knows which hosts have huge pages ready."""
        return Resources(overhead_mb(vm) if self._pages and huge_page_kib(vm) else required_mb(vm))

    def _try_all(self, failed: tuple[str, ...], hosts: Sequence[str], budget: Budget) -> Outcome:
        vms, gone, start_all = self.vms_on(failed), frozenset(failed), self.restart_check.start_all
        try:
            with budget.share(SEARCH_BUDGET) as share:
                homes, unplaced = start_all(gone, vms, hosts, share, self._order.ready)
        except BudgetSpentError:
            return Unknown(failed)
        if not unplaced:
            return Survival(failed, homes)
        otherwise: dict[str, str] = {}
        if len(self._order.ready(vms)) < len(vms):
            # In an order that is not to be.
            with suppress(BudgetSpentError), budget.share(SEARCH_BUDGET) as share:
                found, left = start_all(gone, vms, hosts, share, tuple)
                otherwise = {} if left else found
        return Loss(failed, unplaced, homes=homes, otherwise=otherwise)

    def _in_order(self, homes: Mapping[str, str]) -> dict[str, str]:
        """The same homes, in an order in which the VMs may start."""
        return {vm: homes[vm] for vm in self._order.ordered(homes)}


def _narrowed(block: Block, open_to: Callable[[str], frozenset[str]]) -> Block:
    return block.narrowed(frozenset.intersection(*map(open_to, block.vms)), frozenset())


#: Steps for a whole check by one measure: a set of failing hosts costs one, and one for each VM to place.
DEFAULT_BUDGET = 4_000_000


class CheckQuestion(Record, frozen=True):
    """All that an examiner of failures elsewhere must know."""

    snapshot: Snapshot
    cluster: str
    #: By the engine's own, softer check.
    by_engine: bool
    #: At most about this many for each failure.
    steps: int

    def measure(self) -> Measure:
        """What failures are judged by: costly to make."""
        if self.by_engine:
            return Arithmetic(self.snapshot, self.cluster)
        return Starts(self.snapshot, self.cluster, everywhere=True)


#: Says who examines the failures that a question is about.
Spread = Callable[[CheckQuestion], Examiner]


class HaCheck(Proven, frozen=True, kw_only=True):
    """What is proven about starts after the failure of up to `failures` hosts, or domains, at once."""

    cluster: str
    failures: int
    #: Why nothing is proven now, whatever the numbers say; empty as a rule.
    doubt: str = ""
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailureUnit, ...] = ()
    #: Highly available VMs that do not run though they should: while there are any, nothing is safe.
    lost: tuple[Lost, ...]
    #: Highly available VMs that are down by intent.
    outside: tuple[Outside, ...]

    @property
    def failures_survived(self) -> int:
        """At least this many hosts may fail at once, up to `failures`; none in doubt or with a lost VM."""
        return 0 if self.lost or self.doubt else self.survived_at_once(self.failures).count


def check(
    snapshot: Snapshot,
    cluster_id: str,
    failures: int | None = None,
    steps: int = DEFAULT_BUDGET,
    *,
    domains: Sequence[Domain] | None = None,
    spread: Spread | None = None,
) -> HaCheck:
    """Judge every set of at most `failures` hosts (the cluster's own figure by default).

    With `domains`, every set of at most this many of those (by default one): each fails whole. Hosts that
    answer count as failing ones, and as homes if they are up; a dedicated failover host is a home as any
    other.
    VMs on hosts that do not answer, or that crashed, are lost already: whether they could start now is asked
    of all of them together. A domain may name such hosts as well.
    What is on its way a failure may meet at either end. What the budget leaves open is counted, never
    guessed, and the worst sets are looked for. The answer is the same with any examiner of failures.
    """
    if failures is None:
        failures = snapshot.cluster_by_id[cluster_id].ha_failures if domains is None else 1
    question = CheckQuestion(snapshot, cluster_id, False, steps)
    measure = Starts(snapshot, cluster_id, everywhere=True)
    by_starts = _judge(question, measure, failures, domains, spread)
    lost = judge_lost(snapshot, cluster_id, steps)
    again = partial(check, failures=failures, steps=steps, domains=domains, spread=spread)
    why = doubt(snapshot, cluster_id)
    if by_starts.safe and not lost and not why:
        why = _until_arrival(snapshot, cluster_id, again)
    safe = False if lost else None if why else by_starts.safe
    return HaCheck(
        **asdict(by_starts) | {"safe": safe, "losses": tuple(name_lost(measure, by_starts.losses))},
        doubt=why,
        cluster=cluster_id,
        failures=failures,
        units=() if domains is None else whole_domains(domains, measure.hosts),
        lost=lost,
        outside=tuple(find_outside(snapshot, cluster_id)),
    )


def _until_arrival(snapshot: Snapshot, cluster_id: str, judge: Callable[[Snapshot, str], HaCheck]) -> str:
    """Why a cluster is not called safe that is so at this moment; empty if it stays safe."""
    coming = under_way(snapshot, cluster_id)
    end = judge(coming.end, cluster_id) if coming.end and not coming.leaving else None
    if end is None or end.safe:
        later = coming.leaving and f"where these VMs go is not known: {coming.leaving}"
    elif end.losses:
        names = end.losses[0].domains or [snapshot.host_by_id[host].name for host in end.losses[0].hosts]
        later = f"that of {' and '.join(names)} is not once {coming.arrival}"
    else:
        later = f"not all are judged for when {coming.arrival}"
    return later and f"each failure is survived at this moment; {later}"


#: How much it may cost to name who is lost, as steps, and how many more it costs to ask about a VM.
_NAMING_STEPS = 100_000
_ASKING_STEPS = 100


def name_lost(measure: Starts, losses: Iterable[Loss]) -> Iterator[Loss]:
    """The losses with all VMs that find no host once others have started: a proof ends where one is known.

    Of very many, or in very large clusters, those that are left stay as the proofs name them.
    """
    left = _NAMING_STEPS
    for loss in losses:
        vms = measure.vms_on(loss.hosts)
        left -= 2 * len(vms) * (_ASKING_STEPS + len(measure.hosts))
        if left >= 0 and not loss.otherwise:
            homes = measure.start_in_turn(loss.hosts)
            yield replace(loss, unplaced=tuple(vm for vm in vms if vm not in homes), homes=homes)
        else:
            yield loss


def judge_lost(snapshot: Snapshot, cluster_id: str, steps: int = DEFAULT_BUDGET) -> tuple[Lost, ...]:
    """The highly available VMs that are lost already, each with a host that it could start on now.

    Homes are for all of them together, in the order of restarts.
    """
    lost = find_lost(snapshot, cluster_id)
    if not lost:
        return ()
    if doubt(snapshot, cluster_id):
        return tuple(replace(one, unjudged=True) for one in lost)
    measure = Starts(snapshot, cluster_id, everywhere=True)
    # Also where no lost VM was: what is on its way from a host that does not answer will not arrive.
    silent = (host for host in measure.hosts if snapshot.host_by_id[host].status not in LEAVABLE)
    failed = (*silent, NOWHERE)
    outcome = examine(measure, failed, steps).outcome
    if isinstance(outcome, Unknown):
        return tuple(replace(one, unjudged=True) for one in lost)
    homes = outcome.homes if isinstance(outcome, Survival) else measure.start_in_turn(failed)
    return tuple(replace(one, home=homes.get(one.vm)) for one in lost)


def by_engine(
    snapshot: Snapshot,
    cluster_id: str,
    failures: int,
    steps: int = DEFAULT_BUDGET,
    *,
    domains: Sequence[Domain] | None = None,
    spread: Spread | None = None,
) -> Proven:
    """The engine's own, softer check, with its faults repaired (docs/rules.md, HC1 to HC7, but for HC6).

    It asks whether what VMs use, and are guaranteed, would fit.
    """
    question = CheckQuestion(snapshot, cluster_id, True, steps)
    return _judge(question, question.measure(), failures, domains, spread)


def _judge(
    question: CheckQuestion,
    measure: Measure,
    failures: int,
    domains: Sequence[Domain] | None,
    spread: Spread | None,
) -> Proven:
    known = question.snapshot.host_by_id
    # In doubt nothing is judged.
    steps = 0 if doubt(question.snapshot, question.cluster) else question.steps
    answering = (host for host in measure.hosts if known[host].status in LEAVABLE)
    return judge_failures(
        question.snapshot,
        measure,
        failures,
        steps,
        units=single_hosts(answering) if domains is None else whole_domains(domains, measure.hosts),
        examiner=None if spread is None else spread(question),
        tightest=not question.by_engine and steps > 0,
    )
