"""Draws small clusters and their troubles, and plays them: the real daemon, an engine, at last at rest."""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import NotFound, Rejected
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import (
    APART,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.enforcer.safety.recorder import Recorder
from tests.scenarios.stage import START, Happening, Stage, Story, configured, daemon_of, simulated_time

#: When the last trouble begins, in simulated seconds.
TROUBLED_SECONDS = 500.0

_RULES = (TOGETHER, TOGETHER, APART, APART, APART, APART, SOFT_TOGETHER, SOFT_APART)
_FREE_MB = (0, 2048, 4096, 8192, 8192, 16384, 32768)


@dataclass(frozen=True)
class Case:
    """One cluster, what befalls it, and what of it is opted out. Every id begins with the cluster's."""

    cluster: str
    parts: tuple[Part, ...]
    happenings: tuple[Happening, ...]
    exclude_vms: tuple[str, ...] = ()
    exclude_hosts: tuple[str, ...] = ()


def drawn(seed: int, *, vms: int = 6) -> Case:
    """Two to four hosts and up to this many VMs; the same for the same seed, whatever is besides it."""
    chance = random.Random(seed)
    name = f"c{seed}"
    hosts = [f"{name}-h{number}" for number in range(chance.choice((2, 3, 3, 4, 4)))]
    names = [f"{name}-v{number}" for number in range(chance.randint(3, vms))]
    happenings = tuple(_troubles(chance, name, hosts, names))
    return Case(
        cluster=name,
        parts=tuple(_parts(chance, name, hosts, names)),
        happenings=happenings,
        exclude_vms=tuple(one for one in names if chance.random() < 0.04),
        exclude_hosts=tuple(one for one in hosts if chance.random() < 0.02),
    )


def _parts(chance: random.Random, name: str, hosts: Sequence[str], vms: Sequence[str]) -> Iterator[Part]:
    old = chance.random() < 0.15
    yield cluster(name, compatibility="4.3" if old else "4.7")
    for one in hosts:
        yield host(one, cluster=name, free_mb=chance.choice(_FREE_MB))
    for one in vms:
        yield vm(
            one,
            chance.choice((*hosts, hosts[0], hosts[0], *((None,) if chance.random() < 0.4 else ()))),
            cluster=name,
            memory_mb=chance.choice((1024, 1024, 2048, 4096)),
            usage_cpu_percent=1,
            # The least that the engine counts for any VM: so the daemon reads it, whatever the state says.
            video_mb=16,
            migratable=chance.random() < 0.95,
            ha=chance.random() < 0.3,
            pinned_hosts=(chance.choice(hosts),) if chance.random() < 0.04 else (),
        )
    for number in range(chance.choice((1, 2, 2, 3, 3))):
        yield _group(chance, f"{name}-g{number}", name, hosts, vms)
    if old:
        yield label(f"{name}-l", " ".join(_some(chance, vms)), " ".join(_some(chance, hosts)), implicit=True)


def _group(chance: random.Random, name: str, of: str, hosts: Sequence[str], vms: Sequence[str]) -> Part:
    members = " ".join(_some(chance, vms, least=2))
    if chance.random() < 0.2:
        listed = " ".join(_some(chance, hosts))
        return group(name, DISABLED, members, hosts_rule=chance.choice(_RULES), hosts=listed, cluster=of)
    return group(name, chance.choice(_RULES), members, cluster=of)


def _some(chance: random.Random, of: Sequence[str], least: int = 1) -> list[str]:
    return chance.sample(of, chance.randint(least, max(least, min(3, len(of)))))


def _troubles(
    chance: random.Random, name: str, hosts: Sequence[str], vms: Sequence[str]
) -> Iterator[Happening]:
    """None, a few or many, at any time; the first ones may come before the enforcer has looked."""
    added = 0
    for one in vms:
        if chance.random() < 0.25:
            yield Happening(
                at=0.0, what="fail_migrations", arguments={"vm": one, **chance.choice(_FAULTS), "count": 2}
            )
    for _ in range(chance.choice((0, 1, 2, 3, 5, 8))):
        at = chance.choice((0.0, chance.uniform(0, 20), chance.uniform(0, TROUBLED_SECONDS)))
        one, where = chance.choice(vms), chance.choice(hosts)
        what = chance.choice(_WHAT)
        arguments: dict[str, Any]
        if what in {"fail_host", "recover_host", "deactivate_host", "activate_host"}:
            arguments = {"host": where}
        elif what == "fail_migrations":
            arguments = {"vm": one, **chance.choice(_FAULTS), "count": chance.randint(1, 3)}
        elif what == "migrate_vm":
            arguments = {"vm": one, "host": chance.choice((where, None))}
        elif what == "edit_group":
            number = chance.randint(0, 3)
            arguments = {"group": f"{name}-g{number}", "vms": sorted(_some(chance, vms, least=2))}
        elif what == "add_group":
            added += 1
            arguments = {
                "name": f"{name}-new{added}",
                "cluster": name,
                "together": chance.random() < 0.4,
                "vms": sorted(_some(chance, vms, least=2)),
            }
        elif what == "remove_group":
            arguments = {"group": f"{name}-g{chance.randint(0, 3)}"}
        else:
            arguments = {"vm": one}
        yield Happening(at=round(at, 1), what=what, arguments=arguments)


#: How often what is drawn, of all together.
_WEIGHTS = {
    "fail_host": 2,
    "recover_host": 1,
    "deactivate_host": 1,
    "activate_host": 1,
    "fail_migrations": 4,
    "start_vm": 2,
    "shut_vm": 1,
    "crash_vm": 1,
    "suspend_vm": 1,
    "migrate_vm": 3,
    "cancel_migration": 1,
    "edit_group": 1,
    "add_group": 4,
    "remove_group": 1,
}
_WHAT = [what for what, weight in _WEIGHTS.items() for _ in range(weight)]
_FAULTS: tuple[dict[str, Any], ...] = ({"fail": True}, {"hang": True}, {"slow": 12.0}, {"refuse": True})


def of_the_engine(chance: random.Random) -> Iterator[Happening]:
    """What befalls all: requests and answers get lost, the engine is away, the enforcer is killed."""
    for _ in range(chance.randint(0, 5)):
        at = round(chance.uniform(0, TROUBLED_SECONDS), 1)
        what = chance.choice(("lose", "lose", "lose", "away", "restart", "race", "race"))
        if what == "lose":
            path = chance.choice(("/migrate", "/migrate", "/vms", "/events", ""))
            how = chance.choice(({"drop": "request"}, {"drop": "answer"}, {"status": 503}))
            yield Happening(at=at, what="disturb", arguments={"path": path, "times": 1, **how})
        elif what == "away":
            yield Happening(at=at, what="disturb", arguments={"drop": "request", "times": None})
            yield Happening(at=at + chance.choice((5.0, 60.0, 200.0)), what="engine_returns")
        else:
            yield Happening(at=at, what=what)


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
        for one in self.engine.snapshot().hosts:
            self._do("recover_host", host=one.id)
            self._do("activate_host", host=one.id)
        for each in self.engine.snapshot().vms:
            if each.status == "migrating":
                self._do("cancel_migration", vm=each.id)

    def shut_vm(self, vm: str) -> None:
        self.engine.vms.shutdown(vm)

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


def of_cluster(snapshot: Snapshot, case: Case) -> Snapshot:
    """The part of a snapshot that is one cluster, with what is opted out made immovable."""
    hosts = [host for host in snapshot.hosts if host.cluster == case.cluster]
    left_alone = {host.id for host in hosts if host.id in case.exclude_hosts or host.status != "up"}
    return replace(
        snapshot,
        clusters=tuple(one for one in snapshot.clusters if one.id == case.cluster),
        hosts=tuple(replace(host, status="maintenance") if host.id in left_alone else host for host in hosts),
        vms=tuple(
            replace(vm, migratable=vm.migratable and vm.id not in case.exclude_vms)
            for vm in snapshot.vms
            if vm.cluster == case.cluster
        ),
        affinity_groups=tuple(one for one in snapshot.affinity_groups if one.cluster == case.cluster),
        affinity_labels=tuple(
            one for one in snapshot.affinity_labels if one.id.startswith(f"{case.cluster}-")
        ),
        pending=(),
    )
