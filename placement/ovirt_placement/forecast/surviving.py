"""How many hosts may fail at once, whichever they are, so that every highly available VM starts again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Proven, find_lost
from ovirt_placement.rules.failover.starts import Starts

#: This many failing hosts are looked at, where a cluster is not set to survive more.
_USUALLY: Final = 2


class Survived(Record, frozen=True):
    """A number of hosts may fail."""

    failures: int
    #: Whether one more may surely not; else nobody looked, or it is not known.
    exact: bool


def survived(snapshot: Snapshot, cluster: str) -> Survived | None:
    """How many hosts may fail: none while a VM is lost already; None if there is no highly available VM."""
    if find_lost(snapshot, cluster):
        return Survived(0, exact=True)
    if not any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms):
        return None
    measure = Starts(snapshot, cluster)
    most = min(len(measure.hosts), max(_USUALLY, snapshot.cluster_by_id[cluster].ha_failures))
    return survived_of(judge_failures(snapshot, measure, most, DEFAULT_BUDGET), most)


def survived_of(proven: Proven, most: int) -> Survived:
    """How many hosts may fail, by what is proven of all sets of at most `most`."""
    lost = min((len(loss.hosts) for loss in proven.losses), default=most + 1)
    unknown = min(_unknown(proven), default=most + 1)
    return Survived(min(lost, unknown) - 1, exact=lost <= min(unknown, most))


def _unknown(proven: Proven) -> Iterable[int]:
    """The sizes of sets that are not judged."""
    yield from (len(one.hosts) for one in proven.unknown)
    yield from (size.size for size in proven.sizes if size.unjudged)
