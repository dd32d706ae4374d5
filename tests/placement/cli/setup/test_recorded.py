"""Who had a scheduling policy set up, and what was asked of the engine for it, is recorded."""

from __future__ import annotations

from ovirt_placement.store.user_actions import UserAction, UserActionStore
from ovirt_simulator.http.control import Disturbance
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import STATE


def recorded(live: LiveEngine) -> tuple[UserAction, ...]:
    url = f"sqlite:///{live.config.parent}/store.db"
    store = UserActionStore(url, engine="default", patience_seconds=5)
    try:
        return store.actions(since_seconds=600)
    finally:
        store.close()


def test_setup_and_its_undoing_are_recorded_with_what_was_asked_for(starting: Starting) -> None:
    with starting(STATE) as live:
        live.run(0, "setup", "--cluster", "blue", "--dry-run")
        assert recorded(live) == ()
        live.run(0, "setup", "--cluster", "blue")
        live.run(0, "setup", "--cluster", "blue")  # changes nothing
        live.run(0, "setup", "--undo")
        found = recorded(live)
    assert [(one.kind, one.subject, one.state, one.engine_user) for one in found] == [
        ("setup", "ovirt-placement", "done", "admin@internal"),
        ("setup_undo", "ovirt-placement", "done", "admin@internal"),
    ]
    assert any("blue" in detail for detail in found[0].details)


def test_a_setup_that_fails_halfway_is_recorded_with_how_far_it_came(starting: Starting) -> None:
    with starting(STATE) as live:
        live.server.disturbances.add(Disturbance(method="PUT", path="/clusters/", status=409))
        live.run(2, "setup", "--cluster", "blue")
        (found,) = recorded(live)
    assert found.state == "failed"
    assert found.error is not None
    done, _, of = found.error.partition(" of ")
    assert 0 < int(done) < int(of.split()[0]) == len(found.details)
