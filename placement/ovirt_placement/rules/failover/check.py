"""Whether the highly available VMs of a cluster survive the failure of any few hosts, exactly.

"Safe" means that starts are let through: for every failure there is an order of starts of which each passes
every filter. "Unsafe" means that there is none. What the engine's own check would say, were it exact, is
another question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import asdict, replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import LEAVABLE
from ovirt_placement.rules.failover.arithmetic import Arithmetic
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import (
    NOWHERE,
    Domain,
    ExaminationTask,
    Examiner,
    FailureUnit,
    Lost,
    Measure,
    Outside,
    Proven,
    Survival,
    Unknown,
    examine,
    find_lost,
    find_outside,
    single_hosts,
    whole_domains,
)
from ovirt_placement.rules.failover.starts import Starts

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
    What the budget leaves open is counted, never guessed, and the worst sets are looked for. The answer is
    the same with any examiner of failures (by default this process).
    """
    if failures is None:
        failures = snapshot.cluster_by_id[cluster_id].ha_failures if domains is None else 1
    question = CheckQuestion(snapshot, cluster_id, False, steps)
    measure = question.measure()
    by_starts = _judge(question, measure, failures, domains, spread)
    lost = judge_lost(snapshot, cluster_id, steps)
    why = doubt(snapshot, cluster_id)
    safe = False if lost else None if why else by_starts.safe
    return HaCheck(
        **asdict(by_starts) | {"safe": safe},
        doubt=why,
        cluster=cluster_id,
        failures=failures,
        units=() if domains is None else whole_domains(domains, measure.hosts),
        lost=lost,
        outside=tuple(find_outside(snapshot, cluster_id)),
    )


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
    outcome = examine(measure, ExaminationTask(failed), steps).outcome
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
    """The engine's own, softer check, with its faults repaired (docs/rules.md, HC1 to HC7).

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
    answering = (host for host in measure.hosts if known[host].status in LEAVABLE)
    return judge_failures(
        question.snapshot,
        measure,
        failures,
        question.steps,
        units=single_hosts(answering) if domains is None else whole_domains(domains, measure.hosts),
        examiner=None if spread is None else spread(question),
        tightest=not question.by_engine,
    )
