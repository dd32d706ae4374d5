"""Plays random cases: the real daemon, and an engine with small clusters in trouble, then at rest."""

import random
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import NotFound, Rejected
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import snapshot
from tests.enforcer.safety.cases import TROUBLED_SECONDS, Case, of_the_engine
from tests.enforcer.safety.recorder import Recorder
from tests.scenarios.stage import START, Happening, Stage, Story, configured, daemon_of, simulated_time

#: By then every hold, pause and limit by the hour is over, however often it was doubled.
UNTIL = TROUBLED_SECONDS + 5600.0
#: All else changes a cluster, so that what was decided before may no longer hold.
_NO_CHANGES = {"fail_migrations", "disturb", "engine_returns", "restart", "race", "calm"}


class World(Stage):
    """An engine with a clock, on which things go wrong; what it refuses to a person is no matter."""

    events_seconds = 4.0

    def __init__(
        self, story: Story, engine: Engine, server: Server, folder: Path, recorder: Recorder
    ) -> None:
        super().__init__(story, engine, server, folder)
        self.recorder = recorder
        self._races: list[str] = []
        self._notice_lost_answers(server.disturbances)

    def _notice_lost_answers(self, disturbances: Any) -> None:
        """Let the recorder know of each request for a migration whose answer gets lost."""
        take = disturbances.pop_disturbance

        def on_take(method: str, path: str) -> Disturbance | None:
            met: Disturbance | None = take(method, path)
            asked = re.search(r"/vms/([^/]+)/migrate", path)
            if met is not None and met.drop == "answer" and asked:
                self.recorder.unheard.add(asked[1])
            return met

        disturbances.pop_disturbance = on_take

    def befall(self, happening: Happening) -> None:
        with suppress(Rejected, NotFound):
            super().befall(happening)
            if happening.what not in _NO_CHANGES:
                whose = str(next(iter(happening.arguments.values())))
                self.recorder.touch(whose.partition("-")[0])

    def _do(self, what: str, **arguments: Any) -> None:
        self.befall(Happening(at=self.now, what=what, arguments=arguments))

    def read(self) -> Snapshot:
        """What the enforcer reads; sometimes a person acts right afterwards."""
        found = read_snapshot(self._connection)
        self.recorder.read()
        while self._races:
            self._do("migrate_vm", vm=self._races.pop(), host=None)
        return found

    def restart(self) -> None:
        self.ended = True

    def race(self) -> None:
        """Let a person migrate something as soon as the engine was read."""
        vms = sorted(vm.id for vm in self.engine.snapshot().vms if vm.host is not None)
        if vms:
            self._races.append(random.Random(self.now).choice(vms))

    def calm(self) -> None:
        """The troubles are over: faults are gone, hosts come back, and a person cancels what hangs."""
        self.engine.faults.clear()
        self.engine_returns()
        for host in self.engine.snapshot().hosts:
            self._do("recover_host", host=host.id)
            self._do("activate_host", host=host.id)
        for vm in self.engine.snapshot().vms:
            if vm.status == "migrating":
                self._do("cancel_migration", vm=vm.id)

    def shut_vm(self, vm: str) -> None:
        self.engine.vms.shutdown(vm)

    def crash_vm(self, vm: str) -> None:
        self.engine.vms.crash(vm)

    def suspend_vm(self, vm: str) -> None:
        self.engine.vms.suspend(vm)

    def cancel_migration(self, vm: str) -> None:
        self.engine.vms.cancel_migration(vm)

    def remove_group(self, group: str) -> None:
        self.engine.affinity_groups.remove(group)


def play(cases: Sequence[Case], folder: Path, seed: int) -> World:
    """Play cases besides each other, with settings and troubles of the engine that the seed gives."""
    chance = random.Random(seed)
    settings = settings_of(cases, chance)
    happens = (*of_the_engine(chance), *(one for case in cases for one in case.happenings))
    calm = Happening(at=TROUBLED_SECONDS, what="calm")
    story = Story(until=UNTIL, enforcer=settings, happenings=(*happens, calm))
    state = snapshot(*(part for case in cases for part in case.parts))
    engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
    recorder = Recorder(engine, msgspec.convert(settings, EnforcerSettings))
    with closing(serve(engine)) as server:
        world = World(story, engine, server, folder, recorder)
        world.advance(0.0)
        config = configured(folder, server.api_url, settings)
        with EngineConnection(config.engine) as connection, simulated_time(world.clock):
            while not world.over:
                with daemon_of(config, connection, world.clock, world.read) as daemon:
                    world.perform(daemon, connection)
    return world


def settings_of(cases: Sequence[Case], chance: random.Random) -> dict[str, Any]:
    """Narrow limits, so that they are met; pauses that end long before the last look."""
    return {
        "mode": "enforce",
        "exclude_vms": [vm for case in cases for vm in case.exclude_vms],
        "exclude_hosts": [host for case in cases for host in case.exclude_hosts],
        "interval_seconds": 700.0,
        "poll_seconds": 5.0,
        "cooldown_seconds": 20.0,
        "cooldown_after_success_seconds": chance.choice((0.0, 30.0)),
        "refusal_seconds": 60.0,
        "circle_seconds": 60.0,
        "breaker_pause_seconds": 30.0,
        "breaker_seconds": 300.0,
        "breaker_failures": chance.choice((2, 5)),
        "migrations_at_once": chance.choice((2, 5, 32)),
        "cluster_migrations_at_once": chance.choice((1, 2, 16)),
        "host_migrations_out": chance.choice((1, 2)),
        "host_migrations_in": chance.choice((1, 2)),
        "cluster_migrations_per_cycle": chance.choice((2, 4, 60)),
        "cluster_migrations_per_hour": chance.choice((6, 120)),
        "vm_migrations_per_hour": chance.choice((2, 6)),
    }
