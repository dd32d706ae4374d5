"""Whether the highly available VMs of a cluster survive the failure of any few hosts, exactly.

"Safe" means that starts are let through: for every failure there is an order of starts of which each passes
every filter. "Unsafe" means that there is none. What the engine's own check would say, were it exact, is
reported with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import asdict

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.arithmetic import Arithmetic
from ovirt_placement.rules.failover.examination import Examiner, Measure
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Proven
from ovirt_placement.rules.failover.protection import Outside, outside
from ovirt_placement.rules.failover.starts import Starts
from ovirt_placement.rules.failover.units import Domain, FailureUnit, whole_domains

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
        return (Arithmetic if self.by_engine else Starts)(self.snapshot, self.cluster)


#: Says who examines the failures that a question is about.
Spread = Callable[[CheckQuestion], Examiner]


class HaCheck(Proven, frozen=True, kw_only=True):
    """What is proven about starts after the failure of up to `failures` hosts, or domains, at once."""

    cluster: str
    failures: int
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailureUnit, ...] = ()
    #: By the engine's own, softer check: whether what VMs use, and are guaranteed, would fit.
    by_engine: Proven
    #: Highly available VMs that neither is about.
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

    With `domains`, every set of at most this many of those (by default one): each fails whole. Only hosts
    that are up count, as failing ones and as homes; a dedicated failover host is a home as any other.
    What the budget leaves open is counted, never guessed, and the worst sets are looked for. The answer is
    the same with any examiner of failures (by default this process).
    """
    if failures is None:
        failures = snapshot.cluster_by_id[cluster_id].ha_failures if domains is None else 1
    by_starts = _judge(CheckQuestion(snapshot, cluster_id, False, steps), failures, domains, spread)
    up = [host.id for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up]
    return HaCheck(
        **asdict(by_starts),
        cluster=cluster_id,
        failures=failures,
        units=() if domains is None else whole_domains(domains, up),
        by_engine=by_engine(snapshot, cluster_id, failures, steps, domains=domains, spread=spread),
        outside=tuple(outside(snapshot, cluster_id)),
    )


def by_engine(
    snapshot: Snapshot,
    cluster_id: str,
    failures: int,
    steps: int = DEFAULT_BUDGET,
    *,
    domains: Sequence[Domain] | None = None,
    spread: Spread | None = None,
) -> Proven:
    """The engine's own check, with its faults repaired (docs/rules.md, HC1 to HC7)."""
    return _judge(CheckQuestion(snapshot, cluster_id, True, steps), failures, domains, spread)


def _judge(
    question: CheckQuestion, failures: int, domains: Sequence[Domain] | None, spread: Spread | None
) -> Proven:
    measure = question.measure()
    return judge_failures(
        question.snapshot,
        measure,
        failures,
        question.steps,
        units=None if domains is None else whole_domains(domains, measure.hosts),
        examiner=None if spread is None else spread(question),
        tightest=not question.by_engine,
    )
