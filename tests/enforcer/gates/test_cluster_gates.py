"""Gates that close a whole cluster: the mode, an upgrade, whatever moves already, and the limit."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.store.intents import IntentState
from tests.builders import CLUSTER, Part, cluster, host, pending, snapshot, vm

from .judging import ENFORCE, PARTS, admitted, closed, intent

OPEN = Gates(ENFORCE, (), ())


def test_nothing_passes_in_a_dry_run() -> None:
    reason = 'dry run: set mode = "enforce" under [enforcer] to let it'
    assert closed(Gates(EnforcerSettings(), (), ())) == ("mode", reason)


def test_a_cluster_that_is_upgraded_is_left_alone() -> None:
    parts = (*PARTS, cluster(upgrade_mode=True))
    assert closed(OPEN, *parts) == ("cluster_upgrade", "the cluster is being upgraded")


@pytest.mark.parametrize(
    "more",
    [
        (vm("other", "h2", status="migrating"),),
        (vm("other"), pending("other", "h2")),
        (vm("other", "h1", migrating_to="h2"),),
    ],
    ids=["migrating", "starting", "target known"],
)
def test_a_cluster_in_which_something_moves_is_left_alone(more: tuple[Part, ...]) -> None:
    assert closed(OPEN, *PARTS, *more) == ("busy_cluster", "other is on its way already")


def test_a_migration_of_ours_that_may_be_under_way_keeps_the_cluster_closed() -> None:
    gates = Gates(ENFORCE, (), (intent(IntentState.UNKNOWN, 9999),))
    assert closed(gates) == ("busy_cluster", "the migration of a has not ended yet")


def test_what_moves_elsewhere_is_no_obstacle() -> None:
    parts = (*PARTS, cluster(), cluster("other"), host("far", cluster="other"))
    state = snapshot(*parts, vm("busy", "far", cluster="other", status="migrating"))
    assert OPEN.admit(state, make_plan(state, CLUSTER))


def test_a_cluster_has_a_limit_of_its_own() -> None:
    history = [intent(IntentState.DONE, 100, vm_id=f"vm{number}") for number in range(120)]
    reason = "120 migrations in the last hour, as many as cluster_migrations_per_hour allows"
    assert closed(Gates(ENFORCE, history, ())) == ("cluster_limit", reason)
    assert admitted(Gates(ENFORCE, history[1:], ()))
