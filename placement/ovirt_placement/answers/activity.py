"""What happened in a span of time, made of the samples of its hours: what histories and trends consist of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.samples import Sample


class Activity(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Counts of a span of time, and the worst that was seen in it; null where nobody looked."""

    #: Plans that were made for the first time.
    plans: int
    #: Migrations that ended: done, and failed or refused by the engine.
    migrations: int
    failed: int
    #: The most hard and soft rules that were violated at once, in all clusters together.
    hard: int | None
    soft: int | None
    #: By how many failing hosts the HA reservation fell short at the most; 0 where it was satisfied.
    ha_failures_not_survived: int | None
    #: The most highly available VMs that could not have been restarted after a failure.
    vms_cannot_restart: int | None


def activity(samples: Iterable[Sample]) -> Activity:
    """Put hours together, of one cluster or of several."""
    hours: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        hours[sample.hour].append(sample)
    found = [sample for hour in hours.values() for sample in hour]
    return Activity(
        plans=sum(one.plans for one in found),
        migrations=sum(one.done for one in found),
        failed=sum(one.failed for one in found),
        hard=_most(_sum(one.hard for one in hour) for hour in hours.values()),
        soft=_most(_sum(one.soft for one in hour) for hour in hours.values()),
        ha_failures_not_survived=_most(map(_not_survived, found)),
        vms_cannot_restart=_most(one.ha_not_restarted for one in found),
    )


def named_cluster_of(cluster: str, samples: Iterable[Sample]) -> Named:
    """A cluster, by the name that was written down last; by its id where there is none."""
    names = [one.cluster_name for one in samples if one.cluster == cluster and one.cluster_name]
    return Named(cluster, names[-1] if names else cluster)


def _not_survived(one: Sample) -> int | None:
    if one.ha_failures is None or one.ha_survived is None:
        return None
    return max(0, one.ha_failures - one.ha_survived)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
