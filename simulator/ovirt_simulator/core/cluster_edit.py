"""What a client says of a cluster that it adds or changes, but for its name and its scheduling policy."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from .entities import Cluster, Record


class ClusterEdit(Record, frozen=True):
    """What is None stays as it is."""

    description: str | None = None
    comment: str | None = None
    ha_reservation: bool | None = None
    count_threads_as_cores: bool | None = None
    memory_overcommit_percent: int | None = None

    def applied(self, cluster: Cluster) -> Cluster:
        """Give the cluster as it is after the change."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(cluster, **given)
