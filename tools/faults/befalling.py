"""Faults of what answers do not report it: engine, processes, the database's clock and the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from ovirt_simulator.core.affinity_commands import AffinityGroupEdit
from ovirt_simulator.core.faults import MigrationFault
from tools.faults import distortions
from tools.faults.answers import MIGRATE
from tools.faults.stage import Stage
from tools.faults.wire import Application, Environ, StartResponse

#: Simulated seconds in which the lease of a stopped enforcer ends, and more.
_LONG = 30.0
_LOG_IN = "/ovirt-engine/sso/oauth/token"


def _engine_restarts(stage: Stage, chance: Random) -> None:
    """It goes away while a migration is under way, and comes back with all sessions forgotten."""
    stage.at_migration(lambda: None, first=False, number=chance.randint(1, 2))
    stage.engine.restart(chance.uniform(1, _LONG))


def _sessions_end(stage: Stage, chance: Random) -> None:
    """All sessions end, just when a migration is asked for."""
    stage.at_migration(stage.engine.expire_sessions, first=True, number=chance.randint(1, 2))


def _migrations_fail(stage: Stage, chance: Random) -> None:
    """The host that a VM leaves gives up."""
    stage.engine.engine.faults.next_migrations(MigrationFault(fail=True), count=chance.randint(1, 2))


def _killed_before(stage: Stage, chance: Random) -> None:
    stage.at_migration(lambda: stage.enforcer.kill(), first=True, number=chance.randint(1, 2))
    stage.restart_enforcer()


def _killed_after(stage: Stage, chance: Random) -> None:
    stage.at_migration(lambda: stage.enforcer.kill(), first=False, number=chance.randint(1, 2))
    stage.restart_enforcer()


def _killed_while_away(stage: Stage, chance: Random) -> None:
    """It dies with a migration under way, and comes back long after that has ended."""
    _killed_after(stage, chance)
    stage.engine.let_pass(_LONG)


def _stopped(stage: Stage, chance: Random) -> None:
    """It is stopped while it asks for a migration, for longer than its lease lasts."""
    stage.at_migration(lambda: stage.enforcer.stop(), first=chance.random() < 0.5)
    stage.engine.let_pass(_LONG)
    stage.enforcer.wake()


def _stopped_while_repaired(stage: Stage, _: Random) -> None:
    """It is stopped once it has read that a rule is violated; an administrator takes that rule away."""
    done: list[bool] = []

    def stop() -> None:
        stage.enforcer.stop()
        done.append(True)

    stage.wire.distort("GET", "/datacenters", distortions.with_act(stop, first=False))
    _ = stage.enforcer
    stage.until(lambda: done)
    stage.engine.engine.affinity_groups.edit("a", AffinityGroupEdit(vms=["a1"]))
    stage.engine.let_pass(_LONG)
    stage.enforcer.wake()


def stopped_before_a_log_in(stage: Stage, held: Callable[[], None]) -> None:
    """Its session ends just when it asks for a migration, and it is stopped before it logs in again.

    An administrator empties the groups that are violated; it wakes once `held` returns.
    """
    log_ins: list[int] = []

    def stop() -> None:
        stage.enforcer.stop()
        log_ins.append(stage.wire.seen(_LOG_IN))

    def refuse(application: Application, environ: Environ, start: StartResponse) -> Iterable[bytes]:
        stage.engine.expire_sessions()
        return distortions.with_act(stop, first=False)(application, environ, start)

    stage.wire.distort("POST", MIGRATE, refuse)
    _ = stage.enforcer
    stage.until(lambda: log_ins)
    for group in ("a", "b", "d"):
        stage.engine.engine.affinity_groups.edit(group, AffinityGroupEdit(vms=[]))
    held()
    stage.enforcer.wake()
    stage.until(lambda: stage.wire.seen(_LOG_IN) > log_ins[0])


def _stopped_before_a_log_in(stage: Stage, _: Random) -> None:
    stopped_before_a_log_in(stage, lambda: stage.engine.let_pass(_LONG))


def _inventory_stops(stage: Stage, chance: Random) -> None:
    """The inventory hangs from a moment on; the enforcer reads the engine itself."""
    inventory = stage.start_inventory()
    stage.at_migration(inventory.stop, first=chance.random() < 0.5, number=chance.randint(1, 2))


def _clock_goes_back(stage: Stage, chance: Random) -> None:
    """The database's clock is set back by an hour, and the next request is lost."""

    def back() -> None:
        (stage.folder / "set-back").touch()
        stage.wire.distort("POST", MIGRATE, distortions.nothing)

    stage.at_migration(back, first=True)


def _store_goes(stage: Stage, chance: Random) -> None:
    """The store's file is taken away with a migration under way, and is brought back."""
    aside = stage.folder / "aside.db"
    stage.at_migration(lambda: stage.store.rename(aside), first=chance.random() < 0.5)
    stage.until(lambda: "it was there, and is gone or empty" in stage.enforcer.said)
    begun = len(stage.recorder.begun)
    stage.engine.let_pass(_LONG)
    assert len(stage.recorder.begun) == begun, stage.story
    assert not stage.store.exists()
    aside.rename(stage.store)


FAULTS: Mapping[str, Callable[[Stage, Random], None]] = {
    "engine restart": _engine_restarts,
    "sessions end": _sessions_end,
    "migrations fail": _migrations_fail,
    "killed before the engine acts": _killed_before,
    "killed after the engine acts": _killed_after,
    "killed, and away for long": _killed_while_away,
    "stopped": _stopped,
    "stopped while somebody repairs": _stopped_while_repaired,
    "stopped before a log-in": _stopped_before_a_log_in,
    "inventory stopped": _inventory_stops,
    "clock set back": _clock_goes_back,
    "store gone": _store_goes,
}
