"""Placement keys at work: an engine that starts and migrates, our proxy with the units, and the keeper.

Each story goes the whole way: the engine asks the proxy, the proxy the units, these the engine and the store,
to which the enforcer's daemon adds what has started and stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ovirtsdk4
import pytest
from demo.processes import Processes, address

from ovirt_placement import statefile
from ovirt_placement.model import PlacementKey, SchedulingPolicy, Snapshot
from ovirt_placement.store_keys import KeyStore
from tests import builders as build
from tests.plugins.proxy_process import PLUGINS

POLICY = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 100})
PATIENCE_SECONDS = 60
SPREAD = {"placement_keys": "Repel1:1:-100"}

#: One engine serves all of them.
pytestmark = pytest.mark.xdist_group("placement-keys")

_CONFIGURATION = """\
[engine]
url = "{url}/ovirt-engine/api"
username = "admin@internal"
password_file = "{folder}/password"
[inventory]
directory = "{folder}"
max_age_seconds = 0.001
[store]
url = "sqlite:///{folder}/store.db"
patience_seconds = 30.0
[enforcer]
interval_seconds = 0.2
"""


def cluster(name: str, hosts: int, *vms: dict[str, Any], **first_host: Any) -> list[build.Part]:
    """A cluster with hosts NAME-h1 ... and VMs NAME-a ...; the fields of the first host may differ."""
    return [
        build.cluster(name, scheduling_policy=POLICY),
        build.host(f"{name}-h1", cluster=name, **first_host),
        *(build.host(f"{name}-h{at}", cluster=name) for at in range(2, hosts + 1)),
        *(
            build.vm(f"{name}-{letter}", cluster=name, **vm)
            for letter, vm in zip("abcdef", vms, strict=False)
        ),
    ]


def world() -> Snapshot:
    owned = {"quota": "customer-7", "memory_mb": 2048, "guaranteed_mb": 2048}
    licensed = {"template": "windows"}
    busy = {"host": "load-h1", "status": "up", "vcpus": 16, "usage_cpu_percent": 90}
    small = {"memory_mb": 5000, "free_mb": 5000}
    return build.snapshot(
        *cluster("private", 3, owned, {}, owned, **small),
        *cluster("licence", 3, licensed, {}, licensed, {}),
        *cluster("spread", 3, *[{"custom_properties": SPREAD}] * 6),
        *cluster("island", 4, {}),
        *cluster("load", 2, busy, {}, {}, cpu_percent=95),
        *cluster("best", 4, {"host": "best-h1", "status": "up"}),
    )


def on_hosts(cluster: str, name: str, *values: float, weight: float | None = None) -> list[PlacementKey]:
    return [
        PlacementKey(
            level="node", resource=f"{cluster}-h{at}", key_class="system", name=name, value=value,
            weight=weight, sticky=weight is not None,
        )
        for at, value in enumerate(values, 1)
    ]  # fmt: skip


def wanted(level: str, resource: str, name: str, value: float, weight: float) -> PlacementKey:
    return PlacementKey(
        level=level, resource=resource, key_class="system", name=name, value=value, weight=weight
    )


KEYS = (
    # Private to customer 7, in both directions.
    *on_hosts("private", "PRIV7", 1, 0, 0),
    *on_hosts("private", "SHARED", 0, 1, 1),
    wanted("cluster", "private", "PRIV7", 1, -200),
    wanted("cluster", "private", "SHARED", 1, 50),
    wanted("billing_entity", "customer-7", "PRIV7", 1, 100),
    wanted("billing_entity", "customer-7", "SHARED", 1, -200),
    # Licensed for what the template holds; others rather go elsewhere.
    *on_hosts("licence", "WINLIC", 1, 0, 0),
    *on_hosts("licence", "NOWINLIC", 0, 1, 1),
    wanted("image", "windows", "WINLIC", 1, 100),
    wanted("image", "windows", "NOWINLIC", 1, -200),
    wanted("cluster", "licence", "WINLIC", 0, 20),
    # Two islands of storage.
    *on_hosts("island", "SAN", 1, 1, 2, 2, weight=60),
    # Idle hosts.
    wanted("cluster", "load", "#LOAD", 0, 100),
    # The newest host.
    *on_hosts("best", "GEN", 0, 0.5, 1, 0.5),
    wanted("cluster", "best", "GEN", 1, 80),
)


class World:
    """A running engine and the words to speak to it, and the store that the keeper writes to."""

    def __init__(self, connection: ovirtsdk4.Connection, store: KeyStore, proxy_log: Path) -> None:
        self._vms = connection.system_service().vms_service()
        self._proxy_log = proxy_log
        self.store = store

    def calls(self) -> int:
        """How often the engine has asked the proxy to filter hosts."""
        return self._proxy_log.read_text().count("runFilters")

    def start(self, vm: str) -> str:
        """Start a VM, and return its host once the keeper has seen it."""
        service = self._vms.vm_service(vm)
        service.start()
        self.until(lambda: service.get().status.value == "up" and self.recorded(vm), f"{vm} to be up")
        return str(service.get().host.id)

    def stop(self, vm: str) -> None:
        """Stop a VM, until the keeper has seen it."""
        service = self._vms.vm_service(vm)
        service.stop()
        self.until(lambda: service.get().status.value == "down" and not self.recorded(vm), f"{vm} to be down")

    def migrate(self, vm: str, host: str | None = None) -> str:
        """Migrate a VM, to where the engine chooses if to no host, and return where it went."""
        service = self._vms.vm_service(vm)
        source = service.get().host.id
        service.migrate(**({} if host is None else {"host": ovirtsdk4.types.Host(id=host)}))
        self.until(
            lambda: service.get().host.id != source and service.get().status.value == "up", f"{vm} to move"
        )
        return str(service.get().host.id)

    def recorded(self, vm: str) -> bool:
        return vm in self.store.runs()

    def frozen(self, vm: str) -> tuple[tuple[str, float], ...]:
        return next(record.keys for record in self.store.records().frozen if record.vm == vm)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain for {what}"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    (folder / "state.json").write_bytes(statefile.dumps(world()))
    (folder / "password").write_text("password")
    (folder / "password").chmod(0o600)
    store = KeyStore(f"sqlite:///{folder}/store.db", patience_seconds=30)
    store.change(KEYS, set_by="ann")
    config = folder / "ovirt-placement.toml"
    with Processes(folder, {"OVIRT_PLACEMENT_CONFIG": str(config)}) as processes:
        proxy = _start(processes, "ovirt-scheduler-proxy run --listen 127.0.0.1:0 --plugins", PLUGINS)
        simulator = "ovirt-simulator run --listen 127.0.0.1:0 --time-scale 60 --proxy " + proxy + " --state"
        url = _start(processes, simulator, folder / "state.json")
        config.write_text(_CONFIGURATION.format(url=url, folder=folder))
        processes.start("ovirt-enforcer", ["ovirt-enforcer", "run", "--config", str(config)])
        with ovirtsdk4.Connection(f"{url}/ovirt-engine/api", "admin@internal", "password") as connection:
            yield World(connection, store, processes.log("ovirt-scheduler-proxy"))
    store.close()


def _start(processes: Processes, command: str, path: Path) -> str:
    """Start a command whose last argument is a path; return its URL."""
    arguments = [*command.split(), str(path)]
    return address(processes.start(arguments[0], arguments))


def test_a_virtual_private_cloud_takes_its_owner_alone_and_its_owner_goes_nowhere_else(engine: World) -> None:
    asked = engine.calls()
    assert engine.start("private-a") == "private-h1"
    assert engine.start("private-b") in {"private-h2", "private-h3"}
    assert engine.calls() == asked + 2
    with pytest.raises(ovirtsdk4.Error):  # full: the shared hosts are refused all the same
        engine.start("private-c")


def test_a_licence_bound_template_runs_where_the_licence_is_and_others_rather_do_not(engine: World) -> None:
    assert {engine.start(f"licence-{letter}") for letter in "ac"} == {"licence-h1"}
    assert {engine.start(f"licence-{letter}") for letter in "bd"} <= {"licence-h2", "licence-h3"}


def test_a_soft_spread_fills_hosts_evenly(engine: World) -> None:
    hosts = [engine.start(f"spread-{letter}") for letter in "abcdef"]
    assert sorted(hosts[:3]) == sorted(hosts[3:]) == ["spread-h1", "spread-h2", "spread-h3"]
    assert engine.frozen("spread-a") == (("Repel1", 1.0),)


def test_a_vm_returns_to_its_island(engine: World) -> None:
    island = {"island-h1": 1.0, "island-h2": 1.0, "island-h3": 2.0, "island-h4": 2.0}
    home = island[engine.start("island-a")]
    for _ in range(4):
        engine.stop("island-a")
        assert [copy.value for copy in engine.store.records().copies if copy.vm == "island-a"] == [home]
        assert island[engine.start("island-a")] == home


def test_load_keys_follow_the_statistics(engine: World) -> None:
    assert engine.start("load-b") == "load-h2"
    assert engine.migrate("load-a", "load-h2") == "load-h2"
    assert engine.start("load-c") == "load-h1"


def test_a_migration_goes_to_the_best_host_and_leaves_the_record(engine: World) -> None:
    engine.until(lambda: engine.recorded("best-a"), "the record of a VM that ran before")
    since = engine.store.runs()["best-a"]
    assert engine.migrate("best-a") == "best-h3"
    engine.until(lambda: engine.recorded("best-a"), "its record")
    assert engine.store.runs()["best-a"] == since
