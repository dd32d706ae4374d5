"""What Prometheus can read of the inventory service."""

from prometheus_client import Counter

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.model import Snapshot
from ovirt_service.metrics import Instruments

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class InventoryMetrics(Instruments):
    """Counts and times; each is moved where it happens."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("ovirt_placement_inventory", engine)
        self.versions = self.counter("versions", "Versions published")
        self.age = self.gauge(
            "snapshot_age_seconds",
            "Since when something may be missing in what is published; +Inf before anything is",
        )
        self.as_of = self.gauge(
            "snapshot_timestamp_seconds",
            "The moment that what is published shows whole, in seconds since 1970; 0 before anything is",
        )
        self.requests = self.counter(
            "engine_requests",
            "Requests to the engine by what is asked for; refused: it said no; failed: it gave no answer",
            "kind",
            "result",
        )
        self.readings = self.histogram(
            "reading_duration_seconds",
            "Time of a turn of the follower, and of each larger reading, whether or not it succeeded",
            "reading",
            buckets=_BUCKETS,
        )
        self.disabled_units = self.gauge(
            "disabled_units",
            "Units in the scheduling policy of a cluster that the engine has disabled: it does not ask them",
            "cluster",
        )
        self.questions = self.counter("questions", "Questions of readers by kind", "kind")
        self.closed = self.counter("readers_closed", "Readers closed since too many were connected")

    def count_disabled(self, snapshot: Snapshot) -> None:
        """Show how many units are disabled, by cluster; clusters that are gone are shown no more."""
        self.disabled_units.clear()
        for cluster in snapshot.clusters:
            policy = cluster.scheduling_policy
            self.disabled_units.labels(cluster.name).set(len(policy.disabled) if policy else 0)


class CountedConnection(EngineConnection):
    """A connection whose readings are counted."""

    def __init__(self, settings: EngineSettings, requests: Counter) -> None:
        super().__init__(settings)
        self._requests = requests

    def get(self, path: str, **query: str | int | bool) -> bytes:
        result = "failed"
        try:
            answer = super().get(path, **query)
            result = "ok"
        except EngineFault:
            result = "refused"
            raise
        finally:
            self._requests.labels(kind_of(path), result).inc()
        return answer


def kind_of(path: str) -> str:
    """What a request asks for, without the ids: `clusters/affinitygroups` of all clusters alike."""
    return "/".join(path.strip("/").split("/")[::2])
