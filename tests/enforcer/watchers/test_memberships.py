"""A VM that loses its groups and labels with its cluster is reported once, and what a user wanted never."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from ovirtsdk4 import types

from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.watchers.engine_watch import MembershipRecorder
from ovirt_placement.answers.orders import losses
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import add_event
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.observations import MembershipStore
from ovirt_simulator.http.control import Disturbance
from tests.builders import APART, SOFT_TOGETHER, cluster, group, host, label, snapshot, vm
from tests.enforcer.actions import bench as benches

STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    host("h1", cluster="c1"),
    host("h2", cluster="c2"),
    vm("v1", name="web", cluster="c1"),
    vm("v2", name="db", cluster="c1"),
    vm("v3", name="lonely", cluster="c1"),
    vm("v4", name="native", cluster="c2"),
    group("g1", SOFT_TOGETHER, "v1 v2", cluster="c1", name="near"),
    group("g2", APART, "v2", cluster="c1", name="off", vm_labels=("ours",)),
    label("ours", "v1"),
)
#: All that v1 is a member of.
ALL = {"web": ({"near", "off"}, {"ours"})}


class Bench(benches.Bench):
    """An enforcer that only observes, and restarts on one store."""

    connection: EngineConnection
    kept: MembershipStore
    daemon: Daemon

    def __init__(self, folder: Path, state: Snapshot) -> None:
        super().__init__(folder, state, {})
        self.parts = ExitStack()
        #: What is read next, in place of what the engine holds then.
        self.readings: list[Snapshot] = []

    def restart(self) -> None:
        """A new process: it knows what the store holds, and nothing else."""
        self.parts.close()
        self.kept = MembershipStore(self.config.store.url, engine="default", patience_seconds=5)
        self.parts.callback(self.kept.close)
        recorder = MembershipRecorder(self.kept, partial(add_event, self.connection), self.clock, 60.0)
        enforcing = self.enforcing(read=self.read, watchers=(recorder,))
        self.daemon = self.parts.enter_context(enforcing)

    def read(self) -> Snapshot:
        return self.readings.pop(0) if self.readings else read_snapshot(self.connection)

    def cycles(self, number: int = 2) -> None:
        self.cycle(self.daemon, number)

    def put(self, vm_id: str, cluster_id: str) -> None:
        """Change a VM's cluster as an administrator does."""
        with self.connection.session() as sdk:
            service = sdk.system_service().vms_service().vm_service(vm_id)
            service.update(types.Vm(cluster=types.Cluster(id=cluster_id)))

    def lost(self) -> dict[str, tuple[set[str], set[str]]]:
        """The names of lost groups and labels, by the VM's name."""
        return {
            one.vm.name: ({each.name for each in one.groups}, {each.name for each in one.labels})
            for one in losses(self.kept.lost())
        }

    def events(self) -> list[types.Event]:
        """What was reported, the oldest first."""
        with self.connection.session() as sdk:
            found = sdk.system_service().events_service().list()
        return [event for event in reversed(found) if event.origin == "ovirt-placement"]


@contextmanager
def opened(folder: Path, state: Snapshot) -> Iterator[Bench]:
    """Serve a state of the engine, besides a store that may be filled already."""
    bench = Bench(folder, state)
    with bench.connected() as bench.connection, bench.parts:
        bench.restart()
        yield bench
    bench.close()


@pytest.fixture
def bench(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Bench]:
    caplog.set_level(logging.INFO)
    with opened(tmp_path, STATE) as running:
        yield running


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_loss_is_written_down_logged_and_reported_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cycles()
    assert (bench.lost(), bench.events()) == ({}, [])
    bench.put("v1", "c2")
    bench.cycles(5)
    assert bench.lost() == ALL
    text = (
        "VM web left cluster blue, and the engine took it out of affinity groups near, off and affinity label"
        " ours; see: ovirt-placement groups lost"
    )
    assert warnings(caplog) == [text]
    (event,) = bench.events()
    assert (event.description, event.severity) == (text, types.LogSeverity.WARNING)
    assert (event.vm.id, event.cluster.id) == ("v1", "c2")
    (one, *_) = losses(bench.kept.lost())
    assert (one.vm.id, one.cluster.id, one.groups[0].id, one.labels[0].id) == ("v1", "c1", "g1", "ours")


@pytest.mark.system
@pytest.mark.parametrize("cycles", [0, 1, 2])
def test_a_restart_neither_misses_nor_repeats_it(
    bench: Bench, caplog: pytest.LogCaptureFixture, cycles: int
) -> None:
    bench.cycles()
    bench.put("v1", "c2")
    bench.cycles(cycles)
    bench.restart()
    bench.cycles(3)
    bench.restart()
    bench.cycles(3)
    assert bench.lost() == ALL
    assert (len(warnings(caplog)), len(bench.events())) == (1, 1)


@pytest.mark.system
def test_it_is_found_though_the_vm_has_gone_on_or_back(bench: Bench) -> None:
    bench.cycles()
    bench.put("v1", "c2")
    bench.cycles(1)
    bench.put("v1", "c1")
    bench.cycles(3)
    assert (bench.lost(), len(bench.events())) == (ALL, 1)


@pytest.mark.system
def test_what_somebody_wanted_is_no_loss(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.cycles()
    bench.engine.affinity_groups.remove_member("g1", "vms", "v1")  # within its cluster
    bench.engine.labels.remove_member("ours", "vms", "v1")
    bench.put("v3", "c2")  # a member of nothing
    bench.engine.affinity_groups.remove("g2")
    bench.cycles()
    bench.put("v1", "c2")
    bench.cycles(3)
    bench.engine.affinity_groups.remove("g1")
    bench.cycles(3)
    assert (bench.lost(), bench.events(), warnings(caplog)) == ({}, [], [])


def test_a_group_that_was_removed_with_the_cluster_still_there_is_no_loss(bench: Bench) -> None:
    bench.cycles()
    bench.engine.affinity_groups.remove("g1")
    bench.put("v1", "c2")
    bench.cycles(3)
    assert bench.lost() == {"web": ({"off"}, {"ours"})}


def test_a_group_that_went_with_its_cluster_is_lost(bench: Bench, tmp_path: Path) -> None:
    """Who empties a cluster to remove it is who needs the list."""
    bench.cycles()
    rest = snapshot(
        cluster("c2", name="red"),
        host("h2", cluster="c2"),
        *(replace(one, cluster="c2") for one in STATE.vms),
        label("ours"),
    )
    with opened(tmp_path, rest) as later:
        later.cycles(3)
        assert (later.lost(), len(later.events())) == ({**ALL, "db": ({"near", "off"}, set())}, 2)


def test_an_entry_goes_when_the_vm_is_a_member_of_that_name_again(bench: Bench) -> None:
    bench.cycles()
    bench.put("v1", "c2")
    bench.cycles(3)
    bench.engine.labels.add_member("ours", "vms", "v1")
    bench.engine.affinity_groups.remove("g1")
    bench.cycles(1)
    assert bench.lost() == {"web": ({"near"}, set())}, "off has that label"
    bench.engine.affinity_groups.add("c2", name="near", vms=("v1", "v4"), vms_rule=SOFT_TOGETHER)
    bench.cycles(1)
    assert (bench.lost(), len(bench.events())) == ({}, 1)


@pytest.mark.system
def test_a_second_loss_is_reported_like_the_first(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.cycles()
    for _ in range(2):
        bench.put("v1", "c2")
        bench.cycles(3)
        bench.put("v1", "c1")
        bench.engine.labels.add_member("ours", "vms", "v1")
        bench.engine.affinity_groups.add_member("g1", "vms", "v1")
        bench.cycles(3)
        assert bench.lost() == {}
    assert (len(warnings(caplog)), len(bench.events())) == (2, 2)


def test_requests_on_both_sides_of_the_change_make_no_half_of_it(bench: Bench) -> None:
    """The VM is read in its new cluster, its groups before and its labels after, and then all of it."""
    before = bench.read()
    bench.cycles()
    bench.put("v1", "c2")
    bench.readings = [replace(bench.read(), affinity_groups=before.affinity_groups)]
    bench.cycles(3)
    assert (bench.lost(), len(bench.events())) == (ALL, 1)


@pytest.mark.system
def test_the_engine_that_takes_no_events_hears_of_it_later_and_the_list_waits_for_nobody(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cycles()
    bench.server.disturbances.add(Disturbance(method="POST", path="/events", status=503, times=3))
    bench.put("v1", "c2")
    bench.cycles(2)
    assert (bench.lost(), bench.events()) == (ALL, [])
    bench.cycles(8)
    (event,) = bench.events()
    assert event.description.startswith("VM web left cluster blue")
    assert sum("left cluster" in text for text in warnings(caplog)) == 1


@pytest.mark.system
def test_an_event_whose_answer_was_lost_is_not_added_twice(bench: Bench) -> None:
    bench.cycles()
    bench.server.disturbances.add(Disturbance(method="POST", path="/events", drop="answer"))
    bench.put("v1", "c2")
    bench.cycles(8)
    assert len(bench.events()) == 1
    assert all(entry.reported for entry in bench.kept.lost())
