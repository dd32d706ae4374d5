"""Plays random cases: the real daemon, and an engine with small clusters in trouble, then at rest."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.reading.events import read_events
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.affinity_commands import AffinityGroupEdit
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.faults import MigrationFault
from ovirt_simulator.core.rejections import NotFound, Rejected
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import snapshot
from tests.enforcer.safety.cases import TROUBLED_SECONDS, Case, of_the_engine
from tests.enforcer.safety.recorder import Recorder
from tests.scenarios.stage import START, Happening, configured, daemon_of, simulated_time

#: By then every hold, pause and limit by the hour is over, however often it was doubled.
UNTIL = TROUBLED_SECONDS + 5600.0
#: So often the engine is asked for events, in simulated seconds.
_EVENTS_SECONDS = 4.0


class World:
    """An engine with a clock, on which things go wrong; what it refuses to a person is no matter."""

    def __init__(
        self, engine: Engine, server: Server, recorder: Recorder, happenings: Sequence[Happening]
    ) -> None:
        self.engine = engine
        self.server = server
        self.recorder = recorder
        self.now = 0.0
        #: What happened to it so far.
        self.log: list[str] = []
        self._waiting = sorted(happenings, key=lambda happening: happening.at)
        self._restarts = False
        self._races: list[Callable[[], None]] = []
        self._notice_lost_answers(server.disturbances)

    def _notice_lost_answers(self, disturbances: Any) -> None:
        """Let the recorder know of each request for a migration whose answer gets lost."""
        take = disturbances.take

        def on_take(method: str, path: str) -> Disturbance | None:
            met: Disturbance | None = take(method, path)
            asked = re.search(r"/vms/([^/]+)/migrate", path)
            if met is not None and met.drop == "answer" and asked:
                self.recorder.unheard.add(asked[1])
            return met

        disturbances.take = on_take

    def clock(self) -> float:
        return self.now

    @property
    def over(self) -> bool:
        return self.now >= UNTIL

    def perform(self, daemon: Daemon, connection: EngineConnection) -> None:
        """Let the daemon run until the end, or until it is killed."""
        self._connection, self._restarts = connection, False
        reported = self._last_event()

        def sleep(seconds: float) -> bool:
            nonlocal reported
            until = min(self.now + max(seconds, 0.1), UNTIL)
            while self.now < until and not self._restarts:
                self.advance(min(self.now + _EVENTS_SECONDS, until))
                if self._last_event() > reported:
                    reported = self._report(daemon, reported)
                if daemon.due:
                    break
            return self.over or self._restarts

        daemon.run(sleep)

    def _report(self, daemon: Daemon, reported: int) -> int:
        """Let the daemon hear of what the engine has logged, if the engine answers."""
        with suppress(EngineAway):
            events = read_events(self._connection, after=reported, at_most=500)
            daemon.happened(events)
            return max(event.id for event in events)
        return reported

    def _last_event(self) -> int:
        return max((event.id for event in self.engine.queries.events()), default=0)

    def advance(self, until: float) -> None:
        """Let simulated time pass up to this moment, and what befalls the engine until then."""
        while self._waiting and self._waiting[0].at <= until:
            happening = self._waiting.pop(0)
            self._advance(happening.at)
            self.log.append(f"{self.now:.1f}: {happening.what} {happening.arguments}")
            command: Callable[..., None] = getattr(self, happening.what)
            command(**happening.arguments)
        self._advance(until)

    def _advance(self, until: float) -> None:
        self.engine.advance(max(0.0, until - self.now))
        self.now = max(self.now, until)

    def read(self) -> Snapshot:
        """What the enforcer reads; sometimes a person acts right afterwards."""
        found = read_snapshot(self._connection)
        self.recorder.read()
        while self._races:
            self._races.pop()()
        return found

    def restart(self) -> None:
        self._restarts = True

    def race(self) -> None:
        """Let a person migrate something as soon as the engine was read."""
        vms = sorted(vm.id for vm in self.engine.snapshot().vms if vm.host is not None)
        if vms:
            vm = random.Random(self.now).choice(vms)
            self._races.append(lambda: self.person_migrates(vm, None))

    def calm(self) -> None:
        """The troubles are over: faults are gone, hosts come back, and a person cancels what hangs."""
        self.engine.faults.clear()
        self.engine_returns()
        for host in self.engine.snapshot().hosts:
            self.recover_host(host.id)
            self.activate(host.id)
        for vm in self.engine.snapshot().vms:
            if vm.status == "migrating":
                self.person_cancels(vm.id)

    def disturb(self, **disturbance: Any) -> None:
        self.server.disturbances.add(msgspec.convert(disturbance, Disturbance))

    def engine_returns(self) -> None:
        self.server.disturbances.clear()

    def fault(self, vm: str, count: int, **fault: Any) -> None:
        self.engine.faults.next_migrations(MigrationFault(**fault), count=count, vm_id=vm)

    def fail_host(self, host: str) -> None:
        self._do(host, self.engine.hosts.fail, host)

    def recover_host(self, host: str) -> None:
        self._do(host, self.engine.hosts.recover, host)

    def maintenance(self, host: str) -> None:
        self._do(host, self.engine.hosts.deactivate, host)

    def activate(self, host: str) -> None:
        self._do(host, self.engine.hosts.activate, host)

    def start_vm(self, vm: str) -> None:
        self._do(vm, self.engine.vms.start, vm)

    def shut_vm(self, vm: str) -> None:
        self._do(vm, self.engine.vms.shutdown, vm)

    def crash_vm(self, vm: str) -> None:
        self._do(vm, self.engine.vms.crash, vm)

    def suspend_vm(self, vm: str) -> None:
        self._do(vm, self.engine.vms.suspend, vm)

    def person_migrates(self, vm: str, host: str | None) -> None:
        self._do(vm, self.engine.vms.migrate, vm, host_id=host)

    def person_cancels(self, vm: str) -> None:
        self._do(vm, self.engine.vms.cancel_migration, vm)

    def person_edits(self, group: str, vms: list[str]) -> None:
        edit = msgspec.convert({"vms": vms}, AffinityGroupEdit)
        self._do(group, self.engine.affinity_groups.edit, group, edit)

    def person_adds(self, name: str, cluster: str, together: bool, vms: list[str]) -> None:
        rule = {"enabled": True, "positive": together, "enforcing": True}
        edit = msgspec.convert({"name": name, "vms_rule": rule, "vms": vms}, AffinityGroupEdit)
        self._do(cluster, self.engine.affinity_groups.add, cluster, edit)

    def person_removes(self, group: str) -> None:
        self._do(group, self.engine.affinity_groups.remove, group)

    def _do(self, whose: str, command: Callable[..., object], *arguments: Any, **words: Any) -> None:
        with suppress(Rejected, NotFound):
            command(*arguments, **words)
            self.recorder.touch(whose.partition("-")[0])


def play(
    cases: Sequence[Case], folder: Path, seed: int, happenings: Sequence[Happening] | None = None
) -> World:
    """Play cases besides each other, with settings and troubles of the engine that the seed gives."""
    chance = random.Random(seed)
    settings = settings_of(cases, chance)
    befalls = tuple(of_the_engine(chance)) if happenings is None else tuple(happenings)
    happens = [*befalls, *(one for case in cases for one in case.happenings)]
    state = snapshot(*(part for case in cases for part in case.parts))
    engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
    recorder = Recorder(engine, msgspec.convert(settings, EnforcerSettings))
    server = serve(engine)
    try:
        world = World(engine, server, recorder, (*happens, Happening(at=TROUBLED_SECONDS, what="calm")))
        world.advance(0.0)
        config = configured(folder, server.api_url, settings)
        with connect(config.engine) as connection, simulated_time(world.clock):
            while not world.over:
                with daemon_of(config, connection, world.clock, world.read) as daemon:
                    world.perform(daemon, connection)
    finally:
        server.close()
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
