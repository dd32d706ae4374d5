"""Large repairs through the daemon: they take little longer than the busiest host needs, and spread."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.connection.client import connect
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.commands.migrations import Migration
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.placement.planning.ordering.repair import MOVES, repair
from tests.scenarios.stage import START, configured, daemon_of, simulated_time

#: What counts here is what hosts can do: two migrations at once.
_WIDE = {
    "mode": "enforce",
    "host_migrations_in": 2,
    "host_migrations_out": 2,
    "cluster_migrations_at_once": 1000,
    "migrations_at_once": 1000,
    "cluster_migrations_per_cycle": 1000,
    "cluster_migrations_per_hour": 1000,
    "poll_seconds": 2.0,
}


class Log:
    """The seconds of each migration that ended, by host and direction, and the last end."""

    def __init__(self, engine: Engine) -> None:
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.targets: Counter[str] = Counter()
        self.last = 0.0
        #: What runs at the moment, and the most that ever did.
        self.under_way: set[str] = set()
        self.most = 0
        self._begun: dict[str, float] = {}
        self._engine = engine
        migrations: Any = engine.vms._migrations
        begin, forget = migrations.begin, migrations.forget

        def on_begin(migration: Migration) -> None:
            begin(migration)
            self._begun[migration.vm_id] = self._now
            self.under_way.add(migration.vm_id)
            self.most = max(self.most, len(self.under_way))

        def on_forget(migration: Migration, job_status: str) -> None:
            forget(migration, job_status)
            assert job_status == "finished"
            self.under_way.discard(migration.vm_id)
            self.last = self._now
            took = self._now - self._begun.pop(migration.vm_id)
            self.seconds["out", migration.source] += took
            self.seconds["in", migration.target] += took
            self.targets[migration.target] += 1

        migrations.begin, migrations.forget = on_begin, on_forget

    @property
    def _now(self) -> float:
        return self._engine._backend.timeline.elapsed

    def at_least(self, at_once: int) -> float:
        """Seconds that the busiest host needs, this many at once."""
        return max(self.seconds.values()) / at_once


def carried_out(
    state: Snapshot, folder: Path, settings: dict[str, Any], bandwidth: float, most_seconds: float
) -> tuple[Log, Snapshot]:
    """Let the daemon repair a cluster until nothing is under way or due for a while."""
    engine = Engine.from_snapshot(
        state, clock=START, settings=replace(PROMPT, migration_mib_per_second=bandwidth)
    )
    log = Log(engine)
    server = serve(engine)
    now = 0.0

    def read() -> Snapshot:
        """What the engine knows, without the time that a real reading of all this takes."""
        known = engine.snapshot()
        return replace(known, vms=tuple(replace(vm, migrating_to=None) for vm in known.vms))

    try:
        config = configured(folder, server.api_url, settings)
        with (
            connect(config.engine) as connection,
            simulated_time(lambda: now),
            daemon_of(config, connection, lambda: now, read) as daemon,
        ):
            while now < most_seconds:
                pause = max(0.1, daemon.cycle())
                if pause > 5.0 and not log.under_way and now > 0.0:
                    break
                engine.advance(pause)
                now += pause
    finally:
        server.close()
    return log, engine.snapshot()


@pytest.mark.nightly
def test_a_repair_of_238_migrations_takes_little_longer_than_its_busiest_host(tmp_path: Path) -> None:
    state, _ = repair(1, hosts=260, vms=600)
    hosts = (replace(one, memory_mb=2 * one.free_mb or one.memory_mb) for one in state.hosts)
    log, _ = carried_out(replace(state, hosts=tuple(hosts)), tmp_path, _WIDE, 128.0, 6000.0)
    least = log.at_least(at_once=2)
    print(f"\n{log.targets.total()} migrations in {log.last:.0f} s; the busiest host needs {least:.0f} s")
    print(f"{log.most} at once; one after another: {sum(log.seconds.values()) / 2:.0f} s")
    assert log.targets.total() == MOVES
    assert log.last <= 1.3 * least
