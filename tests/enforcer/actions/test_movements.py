"""Which VMs others move back and forth, unlike those that move once, and our own migrations."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_enforcer.actions import recent_moves
from ovirt_enforcer.actions.following import Origins
from ovirt_enforcer.actions.recent_moves import Backoff, Movements, Restless
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.violations import Violation
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.enforcer.gates import judging

SECONDS = 900.0
#: It is asked about migrations of ours that others undid: there are none.
_NO_ENGINE: Any = None


class Watched:
    """A VM `v` that is looked at once a minute."""

    def __init__(self) -> None:
        self.now = 0.0
        self._movements = Movements(SECONDS, lambda: self.now)

    def sees(self, place: str | None, *ours: Intent, drained: str = "") -> set[str]:
        self.now += 60.0
        hosts = [host(name, status="maintenance" if name == drained else "up") for name in ("h1", "h2", "h3")]
        state = snapshot(*hosts, vm("v", place), vm("w", "h1"))
        return {*self._movements.observe(state, ours)}


def intent(target: str, state: IntentState, age_seconds: float = 0.0) -> Intent:
    return judging.intent(state, age_seconds, "v", None, target=target)


@pytest.mark.parametrize(
    "places",
    [
        ["h1", "h1", "h1"],
        ["h1", "h2", "h3"],
        ["h1", "h2", "h1"],
        ["h1", None, "h2", None, "h1", None, "h2"],
        ["h1", "h2", None, "h1", "h2"],
    ],
    ids=["rests", "goes on", "comes back once", "is started anywhere", "is started where it was"],
)
def test_who_does_not_come_back_again_and_again_is_not_restless(places: list[str | None]) -> None:
    watched = Watched()
    assert not any(watched.sees(place) for place in places)


def test_hosts_that_are_drained_one_after_another_make_nobody_restless() -> None:
    watched = Watched()
    ways = [("h1", ""), ("h2", "h1"), ("h1", "h2"), ("h2", "h1"), ("h1", "h2")]
    assert not any(watched.sees(place, drained=drained) for place, drained in ways)


def test_who_comes_back_is_restless_until_it_rests_long_enough() -> None:
    watched = Watched()
    assert not any(watched.sees(place) for place in ("h1", "h2", "h1"))
    seen = [bool(watched.sees("h2")) for _ in range(20)]
    assert seen == [True] * 15 + [False] * 5


def test_our_own_migrations_do_not_count() -> None:
    watched = Watched()
    assert not watched.sees("h1")
    for _ in range(3):
        assert not watched.sees("h2", intent("h2", IntentState.ACCEPTED))
        assert not watched.sees("h1", intent("h1", IntentState.DONE, age_seconds=30))


def test_that_we_once_moved_it_there_explains_no_migration_of_today() -> None:
    watched = Watched()
    old = intent("h2", IntentState.DONE, age_seconds=4000), intent("h1", IntentState.FAILED)
    assert not any(watched.sees(place, *old) for place in ("h1", "h2", "h1"))
    assert watched.sees("h2", *old) == {"v"}


def test_what_is_undone_after_a_migration_of_ours_counts() -> None:
    watched = Watched()
    for place in ("h1", "h2"):
        assert not watched.sees(place)
    assert not watched.sees("h1", intent("h1", IntentState.ACCEPTED))
    assert watched.sees("h2") == {"v"}


def found(state: Snapshot) -> dict[str, Restless]:
    movements = Movements(SECONDS, lambda: 0.0)
    others = [one for one in state.vms if one.id != "v"]
    for place in ("h1", "h2", "h1", "h2"):
        movements.observe(snapshot(*state.hosts, vm("v", place), *others), ())
    return dict(movements.observe(state, ()))


def backoff(state: Snapshot) -> Backoff:
    return Backoff(EnforcerSettings(), state, (), Origins(_NO_ENGINE), found(state))


def test_it_is_left_alone_and_so_are_its_soft_groups_but_no_hard_rule() -> None:
    groups = (
        group("near", SOFT_TOGETHER, "v w"),
        group("far", SOFT_APART, "v x"),
        group("others", SOFT_APART, "w x"),
        group("firm", APART, "v w"),
    )
    state = snapshot(host("h1"), host("h2"), vm("v", "h1"), vm("w", "h2"), vm("x", "h2"), *groups)
    assert backoff(state).frozen == {
        "v": "the engine or a user moves it back and forth between h1 and h2",
    }
    assert set(backoff(state).spared(CLUSTER)) == {"near", "far"}


def test_a_hard_rule_that_it_breaks_is_repaired() -> None:
    hard = group("firm", TOGETHER, "v w")
    state = snapshot(host("h1"), host("h2"), vm("v", "h1"), vm("w", "h2"), hard)
    assert backoff(state).frozen == {}


def test_a_cluster_whose_rules_cannot_be_judged_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    state = snapshot(cluster("one"), cluster("two"), host("h1", cluster="one"), vm("a", "h1", cluster="one"))
    restless = {"a": Restless("a", ("h1", "h2", "h1"), 1.0, 1.0)}
    held = Backoff(EnforcerSettings(), state, (), Origins(_NO_ENGINE), restless)

    def fail(snapshot: Snapshot, cluster: str) -> list[Violation]:
        raise ValueError(cluster)

    monkeypatch.setattr(recent_moves, "find_violations", fail)
    assert held.frozen_in("two") == {}
    with pytest.raises(ValueError, match="one"):
        held.frozen_in("one")
