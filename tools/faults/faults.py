"""All faults, by name: of answers, of engine, processes, clock and disk; at moments that a seed draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from ovirt_simulator.core.commands.groups import AffinityGroupEdit
from ovirt_simulator.core.faults import MigrationFault
from tests.builders import CLUSTER
from tools.faults.clusters import LATE
from tools.faults.stage import Stage
from tools.faults.wire import (
    Application,
    Distorted,
    Environ,
    StartResponse,
    bomb,
    cut,
    empty,
    half,
    nothing,
    nothing_after_acting,
    page,
    page_after_acting,
    redirect,
    silence,
    slow,
    with_act,
)

#: What is read of a cluster, and of a VM that migrates.
_LISTS = ("/clusters", "/hosts", "/vms", "/affinitylabels")
#: ... and after what comes first.
_LATER_LISTS = ("/vms", "/affinitylabels", "/affinitylabels")
_ONE_VM = "/vms/[^/]+"
MIGRATE = f"{_ONE_VM}/migrate"
_ANYTHING = "/.*"

_Fault = Callable[[Stage, Random], None]


def _of_readings(answer: Distorted) -> _Fault:
    """Strike some readings of everything, the first or later ones."""

    def strike(stage: Stage, chance: Random) -> None:
        for path in _LISTS:
            stage.wire.distort("GET", path, answer, skip=chance.randrange(4), times=chance.randint(1, 2))

    return strike


def _once_known(answer: Distorted) -> _Fault:
    """Strike the very reading that shows a rule which somebody has made, when all was repaired before."""

    def strike(stage: Stage, chance: Random) -> None:
        def make_rule() -> None:
            stage.wire.distort("GET", path, answer)
            stage.engine.engine.affinity_groups.add(CLUSTER, LATE)

        path = chance.choice(_LATER_LISTS)
        _ = stage.enforcer
        stage.until(lambda: stage.recorder.repaired)
        stage.wire.distort("GET", _LISTS[0], with_act(make_rule, first=True))

    return strike


def _of_looks(answer: Distorted) -> _Fault:
    """Strike looks at a VM on its way."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("GET", _ONE_VM, answer, skip=chance.randrange(4), times=chance.randint(1, 3))

    return strike


def _of_requests(answer: Distorted) -> _Fault:
    """Strike the first or the second request for a migration."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("POST", MIGRATE, answer, skip=chance.randrange(2))

    return strike


def _of_any(answer: Distorted, times: int) -> _Fault:
    """Strike many requests in a row, once the first is answered."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("GET", _ANYTHING, answer, skip=chance.randint(1, 12), times=times)

    return strike


OF_ANSWERS: Mapping[str, _Fault] = {
    "HTML 404 for lists": _of_readings(page(404)),
    "HTML 404 for a list that was known": _once_known(page(404)),
    "HTML 404 for a VM": _of_looks(page(404)),
    "HTML 404 for a migration": _of_requests(page(404)),
    "empty list that was known": _once_known(empty),
    "500 for lists": _of_readings(page(500)),
    "500 before acting": _of_requests(page(500)),
    "500 after acting": _of_requests(page_after_acting),
    "no answer before acting": _of_requests(nothing),
    "no answer after acting": _of_requests(nothing_after_acting),
    "silence after acting": _of_requests(silence),
    "silence of a VM": _of_looks(silence),
    "cut lists": _of_readings(cut),
    "cut answer to a migration": _of_requests(cut),
    "half a list": _of_readings(half),
    "half an answer to a migration": _of_requests(half),
    "gzip bomb": _once_known(bomb),
    "401 storm": _of_any(page(401), 20),
    "401 for a migration": _of_requests(page(401)),
    "redirect of lists": _of_readings(redirect),
    "redirect of a migration": _of_requests(redirect),
    "slow answers": _of_any(slow, 30),
}


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

    stage.wire.distort("GET", "/datacenters", with_act(stop, first=False))
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
        return with_act(stop, first=False)(application, environ, start)

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
        stage.wire.distort("POST", MIGRATE, nothing)

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


OF_PROCESSES: Mapping[str, Callable[[Stage, Random], None]] = {
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


Fault = Callable[[Stage, Random], None]

FAULTS: Mapping[str, Fault] = {**OF_ANSWERS, **OF_PROCESSES}
