"""Maintenance runs in the store: one at a time in a cluster, and readers of keys learn of draining hosts."""

import pytest

from ovirt_placement.store.enforcer.intents import IntentKind, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    MaintenanceRequest,
    MaintenanceStore,
    Overtaken,
    RunState,
    Work,
)
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_service.errors import UserError
from tests.placement.store.conftest import Opening, at_once
from tests.stored import prepared, run_of

REQUEST = MaintenanceRequest(work=Work.NOTHING, stop_vms=("p",), soak_seconds=5.0, failures=1, reboot=False)


@pytest.fixture
def store(opening: Opening) -> MaintenanceStore:
    epoch = opening(LeaseStore).take_lease("the leader", 1000.0) or 0
    return opening(MaintenanceStore, epoch=lambda: epoch)


def begun(store: MaintenanceStore, run: str = "r1", cluster: str = "c1") -> None:
    names = {"id": run, "cluster": cluster, "cluster_name": cluster}
    store.request(run_of("h2", "h1", **names, request=REQUEST, violated=("a rule",)))


def test_what_is_requested_is_there_in_its_order_and_a_cluster_has_one_run_at_a_time(
    store: MaintenanceStore,
) -> None:
    begun(store)
    (run,) = store.active()
    assert (run.state, run.request, run.requested_by) == (RunState.RUNNING, REQUEST, "ada")
    assert run.violated == ("a rule",)
    hosts = [(host.host, host.name, host.phase) for host in run.hosts]
    assert hosts == [(name, name, HostPhase.WAITING) for name in ("h2", "h1")]
    with pytest.raises(UserError, match="run r1 by ada is under way in cluster c1"):
        begun(store, "r2")
    begun(store, "r3", "c2")
    store.end("r1", RunState.STOPPED, "enough")
    begun(store, "r2")
    assert {run.id for run in store.active()} == {"r2", "r3"}
    assert {run.id: run.message for run in store.runs()}["r1"] == "enough"


def test_of_two_who_begin_at_once_one_is_refused_and_learns_of_the_other(opening: Opening) -> None:
    """Each has its own connection, and neither has seen the other's run when it begins."""
    names, several = ("ada", "bob"), [opening(MaintenanceStore) for _ in range(2)]
    for mine in several:
        assert mine.active() == ()

    def begin(number: int) -> str:
        name, mine = names[number], several[number]
        mine.request(run_of("h1", id=f"of-{name}", cluster_name="blue", requested_by=name))
        return name

    refused, winner = sorted(at_once(2, begin), key=lambda answer: answer in names)
    assert isinstance(refused, UserError)
    assert f"run of-{winner} by {winner} is under way in cluster blue" in str(refused)


def test_readers_of_keys_learn_of_draining_hosts(opening: Opening, store: MaintenanceStore) -> None:
    begun(store)
    keys = opening(KeyStore)
    before = keys.records()
    store.enter("r1", "h2", HostPhase.DRAINING, draining=True, vms=["a"])
    marked = keys.records()
    assert (before.draining_hosts, marked.draining_hosts) == ((), ("h2",))
    assert marked.revision != before.revision
    store.end("r1", RunState.FAILED, "no")
    assert keys.records().draining_hosts == ()


def test_a_run_obeys_only_in_the_states_meant_and_it_is_recorded_who_said_so(
    opening: Opening, store: MaintenanceStore
) -> None:
    begun(store)
    with pytest.raises(Overtaken, match="run r1 is running"):
        store.order("r1", "resume", set_by="eve")
    store.order("r1", "pause", set_by="eve")
    store.end("r1", RunState.DONE, "")
    with pytest.raises(Overtaken, match="run r1 is done"):
        store.order("r1", "stop", set_by="eve")
    actions = opening(UserActionStore).actions(since_seconds=600)
    assert [(one.kind, one.login, one.cluster, one.subject) for one in actions] == [
        ("maintenance", "ada", "c1", "r1"),
        ("maintenance_pause", "eve", "c1", "r1"),
    ]
    with pytest.raises(Overtaken, match="no maintenance run r9 any more"):  # the store was restored
        store.order("r9", "stop", set_by="eve")


def test_actions_on_hosts_are_no_migrations(opening: Opening) -> None:
    intents, kind = opening(Store), IntentKind.DEACTIVATE_HOST
    action = prepared(intents, "", "x", kind=kind, source=None, target="h1")
    assert intents.open_intents() == intents.blocking_intents() == ()
    assert [one.kind for one in intents.open_actions()] == [kind]
    intents.fail(action.id, "no")
    assert intents.history(within_seconds=60) == ()
    for host, errors in (("h1", ["no"]), ("h2", [])):
        assert [one.error for one in intents.actions(host, within_seconds=60)] == errors
