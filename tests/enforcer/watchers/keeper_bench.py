"""A keeper with a store of its own, two hosts that are islands of storage, and a VM with keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ovirt_enforcer.watchers.key_recorder import KeyRecorder
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.model import PlacementKey, StickyCopy, Vm
from ovirt_placement.store.keys import KeyStore
from tests import builders
from tests.builders import CLUSTER, host, key, node_key, snapshot
from tests.stored import put_keys

SAN1, SAN2 = (StickyCopy("v", "SAN", island, 60.0) for island in (1.0, 2.0))
#: What the VM is to be remembered by.
SET = (("Group1", 1.0), ("Repel1", 1.0))


def on_cluster(name: str) -> PlacementKey:
    return key(name, 1, 50, "cluster", resource=CLUSTER, key_class="be")


KEYS = (
    node_key("h1", "SAN", 1, weight=60, sticky=True),
    node_key("h2", "SAN", 2, weight=60, sticky=True),
    node_key("h1", "GEN"),
    on_cluster("Group1"),
)


def vm(on: str | None = None, **fields: Any) -> Vm:
    return builders.vm("v", on, custom_properties={"placement_keys": "Repel1:1:-100"}, **fields)


class Bench:
    """Shows snapshots to a keeper and looks into its store."""

    def __init__(self, url: str) -> None:
        self.store = KeyStore(url, engine="default", patience_seconds=30)
        self.now = 0.0
        #: The engine's events of starts, and how often they were read.
        self.starts: tuple[EngineEvent, ...] = ()
        self.readings = 0
        #: Whether what it sees holds all that keys refer to.
        self.detailed = True
        #: Of the lease.
        self.epoch = 1
        self.restart()

    def restart(self) -> None:
        """Forget everything but the store."""
        self.keeper = KeyRecorder(
            self.store,
            lambda: self.now,
            60.0,
            self._read_starts,
            lambda keyed: self.detailed,
            lambda: self.epoch,
        )

    def sees(self, *parts: builders.Part) -> None:
        """Look at hosts h1 and h2 and these."""
        self.keeper.observe(snapshot(host("h1"), host("h2"), *parts))

    @property
    def frozen(self) -> dict[str, tuple[tuple[str, float], ...]]:
        return {record.vm: record.keys for record in self.store.records().frozen_keys}

    @property
    def copies(self) -> tuple[StickyCopy, ...]:
        return self.store.records().sticky_copies

    def _read_starts(self) -> tuple[EngineEvent, ...]:
        self.readings += 1
        return self.starts


@contextmanager
def opened_bench(folder: Path) -> Iterator[Bench]:
    made = Bench(f"sqlite:///{folder}/store.db")
    put_keys(made.store, KEYS)
    yield made
    made.store.close()
