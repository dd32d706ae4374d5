"""Whether the highly available VMs of a cluster survive the failure of any few hosts, exactly.

"Safe" means that starts are let through: for every failure there is an order of starts of which each passes
every filter. "Unsafe" means that there is none. What the engine's own check would say, were it exact, is
told beside it.
"""

from __future__ import annotations

from msgspec.structs import asdict

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.arithmetic import Arithmetic
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Proven
from ovirt_placement.rules.failover.protection import Outside, outside
from ovirt_placement.rules.failover.starts import Starts

#: Steps for a whole check by one measure: a set of failing hosts costs one, and one for each VM to place.
DEFAULT_BUDGET = 4_000_000


class HaCheck(Proven, frozen=True, kw_only=True):
    """What is proven about starts after the failure of up to `failures` hosts of a cluster at once."""

    cluster: str
    failures: int
    #: By the engine's own, softer check: whether what VMs use, and are guaranteed, would fit.
    by_engine: Proven
    #: Highly available VMs that neither is about.
    outside: tuple[Outside, ...]


def check(
    snapshot: Snapshot, cluster_id: str, failures: int | None = None, steps: int = DEFAULT_BUDGET
) -> HaCheck:
    """Judge every set of at most `failures` hosts (the cluster's own figure by default).

    Only hosts that are up count, as failing ones and as homes; a dedicated failover host is a home
    as any other. What the budget leaves open is counted, never guessed.
    """
    failures = snapshot.cluster_by_id[cluster_id].ha_failures if failures is None else failures
    by_starts = judge_failures(snapshot, Starts(snapshot, cluster_id), failures, steps)
    return HaCheck(
        **asdict(by_starts),
        cluster=cluster_id,
        failures=failures,
        by_engine=by_engine(snapshot, cluster_id, failures, steps),
        outside=tuple(outside(snapshot, cluster_id)),
    )


def by_engine(snapshot: Snapshot, cluster_id: str, failures: int, steps: int = DEFAULT_BUDGET) -> Proven:
    """The engine's own check, with its faults mended (docs/rules.md, HC1 to HC7)."""
    return judge_failures(snapshot, Arithmetic(snapshot, cluster_id), failures, steps)
