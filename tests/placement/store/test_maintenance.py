"""Maintenance runs in the store: one at a time in a cluster, and readers of keys learn of draining hosts."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ovirt_placement.store.enforcer.intents import IntendedMigration, IntentKind, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    MaintenanceRequest,
    MaintenanceStore,
    RunState,
    Work,
)
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_service.errors import UserError

REQUEST = MaintenanceRequest(work=Work.NOTHING, stop_vms=("p",), soak_seconds=5.0, failures=1, reboot=False)


@pytest.fixture
def store(url: str) -> Iterator[MaintenanceStore]:
    leases = LeaseStore(url, engine="default", patience_seconds=30)
    epoch = leases.take_lease("the leader", 1000.0)
    leases.close()
    opened = MaintenanceStore(url, engine="default", patience_seconds=30, epoch=lambda: epoch or 0)
    yield opened
    opened.close()


def begun(store: MaintenanceStore, run: str = "r1", cluster: str = "c1") -> None:
    hosts = [("h2", "two"), ("h1", "one")]
    store.request(run, (cluster, cluster), hosts, REQUEST, requested_by="ada", violated=["a rule"])


def test_what_is_requested_is_there_in_its_order(store: MaintenanceStore) -> None:
    begun(store)
    (run,) = store.active()
    assert (run.state, run.request, run.requested_by) == (RunState.RUNNING, REQUEST, "ada")
    assert run.violated == ("a rule",)
    assert [(host.host, host.name, host.phase) for host in run.hosts] == [
        ("h2", "two", HostPhase.WAITING),
        ("h1", "one", HostPhase.WAITING),
    ]


def test_a_cluster_has_one_run_at_a_time(store: MaintenanceStore) -> None:
    begun(store)
    with pytest.raises(UserError, match="run r1 by ada is under way in cluster c1"):
        begun(store, "r2")
    begun(store, "r3", "c2")
    store.end("r1", RunState.STOPPED, "enough")
    begun(store, "r2")
    assert {run.id for run in store.active()} == {"r2", "r3"}
    assert {run.id: run.message for run in store.runs()}["r1"] == "enough"


def test_of_two_who_begin_at_once_one_is_refused_and_learns_of_the_other(url: str) -> None:
    """Each has its own connection, and neither has seen the other's run when it begins."""
    names, ready = ("ada", "bob"), threading.Barrier(2)

    def begin(name: str) -> str | None:
        mine = MaintenanceStore(url, engine="default", patience_seconds=30)
        try:
            assert mine.active() == ()
            ready.wait()
            mine.request(f"of-{name}", ("c1", "blue"), [("h1", "one")], REQUEST, requested_by=name)
        except UserError as error:
            return str(error)
        finally:
            mine.close()
        return None

    with ThreadPoolExecutor(2) as threads:
        outcome = dict(zip(names, threads.map(begin, names), strict=True))
    (winner,) = (name for name in names if outcome[name] is None)
    (loser,) = set(names) - {winner}
    assert f"run of-{winner} by {winner} is under way in cluster blue" in str(outcome[loser])


def test_readers_of_keys_learn_of_draining_hosts(url: str, store: MaintenanceStore) -> None:
    begun(store)
    keys = KeyStore(url, engine="default", patience_seconds=30)
    before = keys.records()
    store.enter("r1", "h2", HostPhase.DRAINING, draining=True, vms=["a"])
    marked = keys.records()
    assert (before.draining, marked.draining) == ((), ("h2",))
    assert marked.revision != before.revision
    store.end("r1", RunState.FAILED, "no")
    assert keys.records().draining == ()
    keys.close()


def test_a_run_obeys_only_in_the_states_meant_and_it_is_recorded_who_said_so(
    url: str, store: MaintenanceStore
) -> None:
    begun(store)
    assert not store.order("r1", RunState.RUNNING, after=(RunState.PAUSED,), set_by="eve")
    assert store.order("r1", RunState.PAUSED, after=(RunState.RUNNING,), set_by="eve")
    store.end("r1", RunState.DONE, "")
    assert not store.order("r1", RunState.STOPPING, after=(RunState.RUNNING, RunState.PAUSED), set_by="eve")
    actions = UserActionStore(url, engine="default", patience_seconds=30).actions(since_seconds=600)
    assert [(one.kind, one.login, one.cluster, one.subject) for one in actions] == [
        ("maintenance", "ada", "c1", "r1"),
        ("maintenance_pause", "eve", "c1", "r1"),
    ]


def test_actions_on_hosts_are_no_migrations(url: str) -> None:
    intents = Store(url, engine="default", patience_seconds=30)
    action = IntendedMigration(
        kind=IntentKind.DEACTIVATE_HOST, vm="", cluster="c", source=None, target="h1", correlation_id="x"
    )
    (prepared,) = intents.prepare([action])
    assert intents.open_intents() == intents.blocking_intents() == ()
    assert [one.kind for one in intents.open_actions()] == [IntentKind.DEACTIVATE_HOST]
    intents.fail(prepared.id, "no")
    assert intents.history(within_seconds=60) == ()
    assert [one.error for one in intents.actions("h1", within_seconds=60)] == ["no"]
    assert intents.actions("h2", within_seconds=60) == ()
    intents.close()
