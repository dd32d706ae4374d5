"""Whatever goes wrong: no VM is asked for twice at once, no rule newly violated, nothing needless or lost."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGSTOP

import pytest
from werkzeug import Response

from ovirt_simulator.core.backend import MigrationFault
from tests.builders import CLUSTER
from tests.enforcer.faults.stage import (
    LATE,
    MIGRATE,
    Ask,
    Distorted,
    Stage,
    after_acting,
    bomb,
    cut,
    drawn,
    empty,
    half,
    nothing,
    page,
    redirect,
    silence,
    slow,
    stage,
    with_act,
)
from tests.examples import seeds
from tests.proxy.running import eventually

#: Acts upon a stage, and draws its moment.
Fault = Callable[[Stage, Random], None]

#: What is read of a cluster.
_LISTS = ("/clusters", "/hosts", "/vms", "/affinitylabels")
#: ... and after what comes first.
_LATER_LISTS = ("/vms", "/affinitylabels", "/affinitylabels")
_LOG_IN = "/ovirt-engine/sso/oauth/token"
#: Simulated seconds in which the lease of a stopped enforcer ends, and more.
_LONG = 30.0


def _of(
    method: str, paths: Sequence[str], skip: tuple[int, int], times: tuple[int, int], answer: Distorted
) -> Fault:
    """Strike requests after some of them, and some of them: both are drawn between two figures."""

    def strike(stage: Stage, chance: Random) -> None:
        for path in paths:
            stage.wire.distort(method, path, answer, skip=chance.randint(*skip), times=chance.randint(*times))

    return strike


#: Readings of everything, the first or later ones.
_of_readings = partial(_of, "GET", _LISTS, (0, 3), (1, 2))
#: Looks at a VM on its way.
_of_looks = partial(_of, "GET", ["/vms/[^/]+"], (0, 3), (1, 3))
#: The first or the second request for a migration.
_of_requests = partial(_of, "POST", [MIGRATE], (0, 1), (1, 1))
#: Requests in a row, once the first is answered.
_of_any = partial(_of, "GET", ["/.*"], (1, 12))


def _once_known(answer: Distorted) -> Fault:
    """Strike the very reading that shows a rule which somebody has made, when all was repaired before."""

    def strike(stage: Stage, chance: Random) -> None:
        def make_rule() -> None:
            stage.wire.distort("GET", path, answer)
            stage.engine.affinity_groups.add(CLUSTER, **LATE)

        path = chance.choice(_LATER_LISTS)
        stage.until(lambda: stage.recorder.repaired)
        stage.wire.distort("GET", _LISTS[0], with_act(make_rule, first=True))

    return strike


def _engine_restarts(stage: Stage, chance: Random) -> None:
    """It goes away while a migration is under way, and comes back with all sessions forgotten."""
    stage.at_migration(lambda: None, first=False, number=chance.randint(1, 2))
    stage.restart_engine(chance.uniform(1, _LONG))


def _sessions_end(stage: Stage, chance: Random) -> None:
    """All sessions end, just when a migration is asked for."""
    stage.at_migration(stage.expire_sessions, first=True, number=chance.randint(1, 2))


def _migrations_fail(stage: Stage, chance: Random) -> None:
    """The host that a VM leaves gives up."""
    stage.engine.faults.expect(MigrationFault(fail=True), count=chance.randint(1, 2))


def _killed(*, first: bool, away: float = 0.0) -> Fault:
    """It dies before or after the engine begins a migration, and comes back, perhaps long after that."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.at_migration(lambda: stage.enforcer.kill(), first=first, number=chance.randint(1, 2))
        stage.restart_enforcer()
        stage.let_pass(away)

    return strike


def _stopped(stage: Stage, chance: Random) -> None:
    """It is stopped while it asks for a migration, for longer than its lease lasts."""
    stage.at_migration(lambda: stage.enforcer.stop(), first=chance.random() < 0.5)
    stage.let_pass(_LONG)
    stage.enforcer.wake()


def _stopped_while_repaired(stage: Stage, _: Random) -> None:
    """It is stopped once it has read that a rule is violated; an administrator takes that rule away."""
    done: list[bool] = []

    def stop() -> None:
        stage.enforcer.stop()
        done.append(True)

    stage.wire.distort("GET", "/datacenters", with_act(stop, first=False))
    stage.until(lambda: done)
    stage.engine.affinity_groups.edit("a", vms=["a1"])
    stage.let_pass(_LONG)
    stage.enforcer.wake()


def stopped_before_a_log_in(stage: Stage, held: Callable[[], None]) -> None:
    """Its session ends just when it asks for a migration, and it is stopped before it logs in again.

    An administrator empties the groups that are violated; it wakes once `held` returns.
    """
    log_ins: list[int] = []

    def stop() -> None:
        stage.enforcer.stop()
        log_ins.append(stage.wire.seen(_LOG_IN))

    def refuse(ask: Ask) -> Response:
        stage.expire_sessions()
        return with_act(stop, first=False)(ask)

    stage.wire.distort("POST", MIGRATE, refuse)
    stage.until(lambda: log_ins)
    for group in ("a", "b", "d"):
        stage.engine.affinity_groups.edit(group, vms=[])
    held()
    stage.enforcer.wake()
    stage.until(lambda: stage.wire.seen(_LOG_IN) > log_ins[0])


def _inventory_stops(stage: Stage, chance: Random) -> None:
    """The inventory hangs from a moment on; the enforcer reads the engine itself."""
    inventory = stage.start_inventory()
    stage.at_migration(
        lambda: inventory.send_signal(SIGSTOP), first=chance.random() < 0.5, number=chance.randint(1, 2)
    )


def _clock_goes_back(stage: Stage, chance: Random) -> None:
    """The database's clock is set back by an hour, and the next request is lost."""

    def back() -> None:
        stage.set_back.touch()
        stage.wire.distort("POST", MIGRATE, nothing)

    stage.at_migration(back, first=True)


def _store_goes(stage: Stage, chance: Random) -> None:
    """The store's file is taken away with a migration under way, and is brought back."""
    aside = stage.store.with_name("aside.db")
    stage.at_migration(lambda: stage.store.rename(aside), first=chance.random() < 0.5)
    stage.until(lambda: "it was there, and is gone or empty" in stage.enforcer.said)
    begun = len(stage.recorder.ours)
    stage.let_pass(_LONG)
    assert len(stage.recorder.ours) == begun, stage.story
    assert not stage.store.exists()
    aside.rename(stage.store)


FAULTS: Mapping[str, Fault] = {
    "HTML 404 for lists": _of_readings(page(404)),
    "HTML 404 for a list that was known": _once_known(page(404)),
    "HTML 404 for a VM": _of_looks(page(404)),
    "HTML 404 for a migration": _of_requests(page(404)),
    "empty list that was known": _once_known(empty),
    "500 for lists": _of_readings(page(500)),
    "500 before acting": _of_requests(page(500)),
    "500 after acting": _of_requests(after_acting(page(500))),
    "no answer before acting": _of_requests(nothing),
    "no answer after acting": _of_requests(after_acting(nothing)),
    "silence after acting": _of_requests(after_acting(silence)),
    "silence of a VM": _of_looks(silence),
    "cut lists": _of_readings(cut),
    "cut answer to a migration": _of_requests(cut),
    "half a list": _of_readings(half),
    "half an answer to a migration": _of_requests(half),
    "gzip bomb": _once_known(bomb),
    "401 storm": _of_any((20, 20), page(401)),
    "401 for a migration": _of_requests(page(401)),
    "redirect of lists": _of_readings(redirect),
    "redirect of a migration": _of_requests(redirect),
    "slow answers": _of_any((30, 30), slow),
    "engine restart": _engine_restarts,
    "sessions end": _sessions_end,
    "migrations fail": _migrations_fail,
    "killed before the engine acts": _killed(first=True),
    "killed after the engine acts": _killed(first=False),
    "killed, and away for long": _killed(first=False, away=_LONG),
    "stopped": _stopped,
    "stopped while somebody repairs": _stopped_while_repaired,
    "stopped before a log-in": lambda stage, _: stopped_before_a_log_in(stage, lambda: stage.let_pass(_LONG)),
    "inventory stopped": _inventory_stops,
    "clock set back": _clock_goes_back,
    "store gone": _store_goes,
}


#: It is in the quick suite.
QUICK = "500 after acting"
#: Neither the lease ends nor the patience with the engine, but what was read grows older than it may.
_PATIENCE, _LEASE, _TOO_OLD = 30.0, 60.0, 3.5

#: Each fault on one cluster of two that take turns; where many examples are asked for, on more.
CASES = [
    pytest.param(
        name,
        at % 2 + 2 * turn,
        marks=() if (name, turn) == (QUICK, 0) else pytest.mark.nightly,
        id=f"{name} {turn}",
    )
    for at, name in enumerate(FAULTS)
    for turn in seeds(4)
]


@pytest.mark.system
@pytest.mark.parametrize(("name", "seed"), CASES)
def test_all_four_invariants_hold_and_the_cluster_ends_repaired(name: str, seed: int, tmp_path: Path) -> None:
    with stage(tmp_path, drawn(seed)) as made:
        FAULTS[name](made, Random(f"{name} {seed}"))
        made.until_over()
        faults = made.faults()
        assert not faults, "\n".join([*faults, made.story])


@pytest.mark.system
def test_nothing_is_migrated_on_what_was_read_before_a_log_in_that_took_long(tmp_path: Path) -> None:
    """An enforcer that leads still when it wakes: what it had decided before is too old nevertheless."""

    def hold() -> None:
        until = time.monotonic() + _TOO_OLD
        eventually(lambda: time.monotonic() > until)

    with stage(tmp_path, drawn(0), patience=_PATIENCE, lease=_LEASE) as made:
        stopped_before_a_log_in(made, hold)
        made.until_over()
        assert "too old" in made.enforcer.said
        assert (made.recorder.ours, made.faults()) == ([], [])
