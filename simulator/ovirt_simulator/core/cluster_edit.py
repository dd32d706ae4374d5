"""What a client says of a cluster that it adds or changes, but for its name and its scheduling policy."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict, replace

from .entities import Cluster, Record


class ClusterEdit(Record, frozen=True):
    """What is None stays as it is."""

    description: str | None = None
    comment: str | None = None
    #: The id of its data center.
    data_center: str | None = None
    compatibility: str | None = None
    cpu_type: str | None = None
    ha_reservation: bool | None = None
    count_threads_as_cores: bool | None = None
    memory_overcommit_percent: int | None = None
    #: By their paths, what is given of elements on which nothing depends.
    others: Mapping[str, str] | None = None

    def applied(self, cluster: Cluster) -> Cluster:
        """Give the cluster as it is after the change."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(cluster, **given | {"others": {**cluster.others, **(self.others or {})}})
