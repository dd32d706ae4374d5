"""A simulated engine, its follower, and the clock of both; and events in one line."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ovirt_placement.config import EngineSettings, InventorySettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.inventory.on_demand import NO_DEMANDS, Demands
from ovirt_placement.inventory.service.follower import Follower
from ovirt_placement.inventory.service.schedule import ReconciliationScope, reconciliations
from ovirt_placement.inventory.service.view import read
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import USUAL, MigrationFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.http.server import Server, serve
from tests.configuration import write_password

TURN_SECONDS = 0.3
#: A turn waits for all that it asks, however busy the machine is.
PATIENT_SECONDS = 60.0
SETTINGS = replace(
    USUAL,
    late_event_probability=0.4,
    host_detection_seconds=1.0,
    host_connecting_seconds=2.0,
    host_fence_seconds=3.0,
)


class Stage:
    """An engine, its follower, and the clock of both."""

    def __init__(self, state: Snapshot, password: Path, patience_seconds: float = PATIENT_SECONDS) -> None:
        self.engine = Engine.from_snapshot(
            state, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=5, settings=SETTINGS
        )
        self.server: Server = serve(self.engine)
        settings = EngineSettings(
            url=self.server.api_url, username="admin@internal", password_file=password, timeout_seconds=5
        )
        self.connection: EngineConnection = EngineConnection(settings)
        self.now = 0.0
        self.failures = 0
        self.larger = reconciliations(InventorySettings())
        self.follower = Follower(
            self.connection,
            lambda: self.now,
            lambda vm, host, before: None,
            self.larger,
            patience_seconds=patience_seconds,
        )
        self.details_at = float("-inf")

    def turn(self, seconds: float = TURN_SECONDS) -> None:
        """Let time pass and the follower take a turn, and read everything when it must."""
        self.engine.advance(seconds)
        self.now += seconds
        try:
            self.follower.turn()
            if not self.follower.believable:
                self.read(ReconciliationScope.WHOLE)
            if self.larger[ReconciliationScope.DETAILS].since > self.details_at:
                self.read(ReconciliationScope.DETAILS, self.follower.needs)
                self.details_at = self.now
            self.follower.follow_up()
        except UserError:
            self.failures += 1

    def read(self, scope: ReconciliationScope, needs: Demands = NO_DEMANDS) -> None:
        self.follower.hand_in(read(self.connection, scope, needs, self.now))

    def begin(self) -> None:
        for _ in range(2):
            self.turn()
        assert self.follower.believable

    def settle(self) -> None:
        """Let what is under way end, and be read; no event reports that a host arrives in maintenance."""
        for _ in range(200):
            self.turn()
        self.read(ReconciliationScope.HOSTS)
        self.turn()

    def shown(self, *, devices: bool = False) -> Snapshot:
        """What the engine shows, read all at once; no host's tags are known otherwise."""
        found = read_snapshot(self.connection, devices=devices)
        return in_order(replace(found, hosts=tuple(replace(host, tags=()) for host in found.hosts)))

    def known(self) -> Snapshot:
        """What the follower knows, but that VMs crashed, which the engine shows of none."""
        found = self.follower.snapshot()
        return in_order(replace(found, vms=tuple(replace(vm, crashed=False) for vm in found.vms)))


def in_order(snapshot: Snapshot) -> Snapshot:
    """The same, where only the order of lists may differ: what is new is added at the end."""
    return replace(
        snapshot,
        vms=tuple(sorted(snapshot.vms, key=lambda vm: vm.id)),
        hosts=tuple(sorted(snapshot.hosts, key=lambda host: host.id)),
        affinity_groups=tuple(sorted(snapshot.affinity_groups, key=lambda group: group.id)),
    )


@contextmanager
def staged(folder: Path, state: Snapshot, patience_seconds: float = PATIENT_SECONDS) -> Iterator[Stage]:
    stage = Stage(state, write_password(folder), patience_seconds)
    try:
        stage.begin()
        yield stage
    finally:
        stage.connection.close()
        stage.server.close()


def turns(stage: Stage, number: int = 4) -> None:
    for _ in range(number):
        stage.turn()


def stir(stage: Stage, dice: random.Random, *more: Callable[[str], object]) -> None:
    """Do something that an administrator, or an accident, might do; or one more deed, to a VM."""
    engine, state = stage.engine, stage.engine.snapshot()
    vm, host = dice.choice(state.vms), dice.choice(state.hosts)
    cluster, group = dice.choice(state.clusters), dice.choice(state.affinity_groups)
    deeds = (
        lambda: engine.vms.start(vm.id),
        lambda: engine.vms.stop(vm.id),
        lambda: engine.vms.migrate(vm.id),
        lambda: engine.vms.migrate(vm.id),
        lambda: engine.vms.suspend(vm.id),
        lambda: engine.vms.crash(vm.id),
        lambda: engine.vms.cancel_migration(vm.id),
        lambda: engine.faults.expect(MigrationFault(fail=True)),
        lambda: engine.hosts.deactivate(host.id),
        lambda: engine.hosts.activate(host.id),
        lambda: engine.hosts.fail(host.id) if dice.random() < 0.3 else None,
        lambda: engine.hosts.recover(host.id),
        lambda: engine.policies.update_cluster(cluster.id, ha_reservation=dice.random() < 0.5),
        lambda: engine.affinity_groups.edit(group.id, priority=7.0),
        lambda: engine.affinity_groups.remove(group.id) if len(state.affinity_groups) > 2 else None,
        lambda: engine.labels.add(f"label{dice.random()}", vms=[vm.id], hosts=[host.id]),
    )
    with suppress(Rejected):
        dice.choice((*deeds, *(lambda deed=deed: deed(vm.id) for deed in more)))()


def event(number: int, code: int = 30, **fields: Any) -> EngineEvent:
    """An event of a code without meaning, unless a test says otherwise."""
    values: dict[str, Any] = {
        "id": number, "code": code, "severity": "normal", "time": 0.0, "description": "",
        "correlation_id": None, "vm": None, "host": None, "cluster": None, **fields,
    }  # fmt: skip
    return EngineEvent(**values)
