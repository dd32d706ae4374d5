"""VMs start, stop and are suspended over simulated time."""

from __future__ import annotations

import pytest

from ovirt_simulator.core.entities import Caller
from tests.builders import host, pending, vm
from tests.simulator.core import engines


def test_a_start_goes_through_its_statuses_and_events() -> None:
    engine = engines.engine(host("h1"), vm("v"))
    job = engine.vms.start("v", caller=Caller(user="joe", correlation_id="abc"))
    assert engines.where(engine, "v") == ("wait_for_launch", "h1")
    engine.advance(1)
    assert engines.where(engine, "v") == ("powering_up", "h1")
    engine.advance(4)
    assert engines.where(engine, "v") == ("up", "h1")
    events = engine.queries.events()
    assert [event.code for event in events] == [32, 153]
    assert {event.correlation_id for event in events} == {"abc"}
    assert events[1].description == "VM v was started by joe (Host: h1)."
    assert events[1].host is not None
    assert events[1].host.name == "h1"
    done = engines.job(engine, job.id)
    assert (done.status, done.correlation_id) == ("finished", "abc")


def test_a_starting_vm_takes_memory_at_once_and_gives_it_back_when_down() -> None:
    engine = engines.engine(host("h1", free_mb=5000), vm("v", memory_mb=2000))
    engine.vms.start("v")
    assert engines.host(engine, "h1").free_mb == 5000 - 2000 - (64 + 3 + 8 + 8)
    engine.advance(10)
    assert engines.host(engine, "h1").free_mb == 5000 - 2000 - (64 + 3 + 8 + 8)
    engine.vms.stop("v")
    engine.advance(10)
    assert engines.where(engine, "v") == ("down", None)
    assert engines.host(engine, "h1").free_mb == 5000


def test_a_host_is_busier_with_a_vm_than_without() -> None:
    engine = engines.engine(
        host("h1", cpu_percent=10, load_average_5m=3, cores=4, memory_mb=10000, memory_free_mb=8000),
        vm("v", vcpus=2, usage_cpu_percent=50, memory_mb=2000, usage_mem_percent=50),
    )
    engine.vms.start("v")
    engine.advance(10)
    busy = engines.host(engine, "h1")
    assert busy.cpu_percent == pytest.approx(10 + 2 * 50 / 4)
    assert busy.load_average_5m == 3 + 1
    assert busy.memory_free_mb == 8000 - 1000


@pytest.mark.parametrize(
    ("command", "between", "after", "expected"),
    [
        ("stop", "powering_down", "down", [33, 61]),
        ("shutdown", "powering_down", "down", [73, 61]),
        ("suspend", "saving_state", "suspended", [501, 503]),
    ],
)
def test_a_running_vm_ends(command: str, between: str, after: str, expected: list[int]) -> None:
    engine = engines.engine(host("h1"), vm("v", "h1"))
    getattr(engine.vms, command)("v")
    assert engines.where(engine, "v") == (between, "h1")
    engine.advance(10)
    assert engines.where(engine, "v") == (after, None)
    assert engines.codes(engine) == expected


def test_a_suspended_vm_is_restored() -> None:
    engine = engines.engine(host("h1"), vm("v", status="suspended"))
    engine.vms.start("v")
    assert engines.where(engine, "v") == ("restoring_state", "h1")
    engine.advance(10)
    assert engines.where(engine, "v") == ("up", "h1")


def test_stopping_a_vm_that_powers_up_ends_its_start() -> None:
    engine = engines.engine(host("h1"), vm("v"))
    engine.vms.start("v")
    engine.advance(2)
    engine.vms.stop("v")
    engine.advance(20)
    assert engines.where(engine, "v") == ("down", None)
    assert 32 not in engines.codes(engine)


def test_what_cannot_start_is_refused_with_an_event() -> None:
    engine = engines.engine(host("h1", free_mb=100), vm("v"), vm("w", "h1"))
    running = engines.refused(engine.vms.start, "w")
    assert (running.http_status, running.detail) == (409, "[Cannot run VM because the VM is in Up status.]")
    full = engines.refused(engine.vms.start, "v")
    assert full.http_status == 409
    assert full.detail == (
        "[Cannot run VM. There is no host that satisfies current scheduling constraints."
        " See below for details:, The host h1 did not satisfy internal filter Memory because"
        " its available memory is too low (100 MB) to run the VM.]"
    )
    assert engines.refused(engine.vms.start, "nobody").http_status == 400
    assert engines.codes(engine) == [54, 54]


def test_a_vm_starts_on_the_host_that_is_named() -> None:
    engine = engines.engine(host("h1"), host("h2", free_mb=2000), vm("v"))
    engine.vms.start("v", host_id="h2")
    assert engines.where(engine, "v") == ("wait_for_launch", "h2")


def test_what_the_state_file_found_under_way_goes_on() -> None:
    engine = engines.engine(
        host("h1"),
        host("h2"),
        vm("boots", "h1", status="powering_up"),
        vm("ends", "h1", status="powering_down"),
        vm("saves", "h1", status="saving_state"),
        vm("moves", "h1", status="migrating", migrating_to="h2"),
        vm("strays", "h1", status="migrating"),
        vm("waits"),
        pending("waits", "h2"),
    )
    engine.advance(60)
    assert {v.id: (v.status, v.host) for v in engine.queries.state.vms.values()} == {
        "boots": ("up", "h1"),
        "ends": ("down", None),
        "saves": ("suspended", None),
        "moves": ("up", "h2"),
        "strays": ("up", "h1"),
        "waits": ("up", "h2"),
    }


def test_a_crashed_vm_restarts_if_it_is_highly_available() -> None:
    engine = engines.engine(host("h1"), vm("ha", "h1", ha=True), vm("other", "h1"))
    engine.vms.crash("ha")
    engine.vms.crash("other")
    assert engines.where(engine, "ha") == ("down", None)
    engine.advance(20)
    assert engines.where(engine, "ha") == ("up", "h1")
    assert engines.where(engine, "other") == ("down", None)
    assert engines.codes(engine) == [119, 9602, 119, 506, 506]
