"""Hosts drain into maintenance, come back, crash and recover."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ovirt_simulator.core.rejections import NotFound
from ovirt_simulator.core.settings import PROMPT, USUAL, MigrationFault
from tests.builders import TOGETHER, group, host, vm
from tests.simulator.core import engines


def test_maintenance_drains_the_host_first() -> None:
    vms = (vm(name, "h1", memory_mb=1024) for name in "ab")
    engine = engines.engine(host("h1"), host("h2"), *vms)
    job = engine.hosts.deactivate("h1", reason="new disks")
    assert engines.host(engine, "h1").status == "preparing_for_maintenance"
    engine.advance(0)
    assert engines.where(engine, "a") == ("migrating", "h1")
    engine.advance(30)
    assert engines.host(engine, "h1").status == "maintenance"
    assert [engines.where(engine, v) for v in "ab"] == [("up", "h2"), ("up", "h2")]
    assert engines.codes(engine) == [67, 67, 600, 63, 63]
    started = engine.queries.events()[-1]
    assert started.description == (
        "Migration initiated by system (VM: a, Source: h1, Destination: h2, Reason: )."
    )
    done = engines.job(engine, job.id)
    assert done.status == "finished"


def test_hard_positive_groups_leave_together() -> None:
    engine = engines.engine(
        host("h1"),
        host("h2", free_mb=1500),
        host("h3", free_mb=2500),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", TOGETHER, "a b"),
    )
    engine.hosts.deactivate("h1")
    engine.advance(60)
    assert [engines.where(engine, v) for v in "ab"] == [("up", "h3"), ("up", "h3")]


def test_a_vm_that_finds_no_place_holds_the_host_until_it_does() -> None:
    engine = engines.engine(host("h1"), host("h2", free_mb=100), vm("a", "h1"), vm("b", "h2"))
    engine.hosts.deactivate("h1")
    engine.advance(20)
    assert engines.host(engine, "h1").status == "preparing_for_maintenance"
    assert engines.codes(engine) == [602]
    engine.vms.stop("b")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "maintenance"
    assert engines.where(engine, "a") == ("up", "h2")
    assert engines.codes(engine) == [602, 33, 61, 67, 15, 63]


def test_maintenance_is_refused() -> None:
    engine = engines.engine(
        host("h1"), host("h2", status="maintenance"), vm("p", "h1", migratable=False, pinned_hosts=("h1",))
    )
    assert engines.refused(engine.hosts.deactivate, "h1").http_status == 409
    assert engines.refused(engine.hosts.deactivate, "h2").http_status == 409
    assert engines.refused(engine.hosts.deactivate, "h9").http_status == 400
    assert engines.refused(engine.hosts.activate, "h1").http_status == 409


def test_activation_takes_time() -> None:
    engine = engines.engine(host("h1", status="maintenance"))
    engine.hosts.activate("h1")
    assert engines.host(engine, "h1").status == "unassigned"
    engine.advance(10)
    assert engines.host(engine, "h1").status == "up"
    assert engines.codes(engine) == [16, 835, 13]
    assert engine.queries.events()[0].description == "Status of host h1 was set to Up."


def test_activation_ends_preparing_for_maintenance() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1"))
    job = engine.hosts.deactivate("h1")
    engine.hosts.activate("h1")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "up"
    assert engines.where(engine, "a") == ("up", "h1")
    done = engines.job(engine, job.id)
    assert done.status == "aborted"


def test_a_crashed_host_is_fenced_and_its_highly_available_vms_restart() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("ha", "h1", ha=True), vm("v", "h1"))
    engine.hosts.fail("h1")
    engine.advance(4)
    assert engines.host(engine, "h1").status == "up"
    engine.advance(2)
    assert engines.host(engine, "h1").status == "non_responsive"
    assert engines.where(engine, "v") == ("unknown", "h1")
    engine.advance(60)
    assert engines.where(engine, "v") == ("down", None)
    assert engines.where(engine, "ha") == ("up", "h2")
    assert engines.codes(engine) == [142, 142, 12, 14, 143, 143, 506, 506]
    engine.hosts.recover("h1")
    assert engines.host(engine, "h1").status == "up"


def test_a_host_without_an_answer_is_connecting_for_80_s_as_the_engines() -> None:
    """Recorded: 3.5 s after the crash 10802, and after 80 s 142 for each VM, then 12."""
    settings = replace(PROMPT, host_connecting_seconds=USUAL.host_connecting_seconds)
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"), settings=settings)
    engine.hosts.fail("h1")
    engine.advance(6)
    assert (engines.host(engine, "h1").status, engines.where(engine, "v")) == ("connecting", ("up", "h1"))
    assert engines.codes(engine) == [10802]
    engine.advance(73)
    assert engines.host(engine, "h1").status == "connecting"
    engine.advance(2)
    assert engines.host(engine, "h1").status == "non_responsive"
    assert engines.where(engine, "v") == ("unknown", "h1")
    assert engines.codes(engine) == [10802, 142, 12]


def test_a_host_that_answers_again_while_it_is_connecting_is_up_and_lost_nothing() -> None:
    settings = replace(PROMPT, host_connecting_seconds=75.0)
    engine = engines.engine(host("h1"), vm("v", "h1"), settings=settings)
    engine.hosts.fail("h1")
    engine.advance(30)
    engine.hosts.recover("h1")
    engine.advance(100)
    assert (engines.host(engine, "h1").status, engines.where(engine, "v")) == ("up", ("up", "h1"))
    assert engines.codes(engine) == [10802]


def test_a_restart_waits_for_a_host() -> None:
    engine = engines.engine(host("h1"), vm("ha", "h1", ha=True))
    engine.hosts.fail("h1")
    engine.advance(100)
    assert engines.where(engine, "ha") == ("down", None)
    assert 507 in engines.codes(engine)
    engine.hosts.recover("h1")
    engine.advance(60)
    assert engines.where(engine, "ha") == ("up", "h1")


def test_a_host_that_comes_back_in_time_has_its_vms_still() -> None:
    engine = engines.engine(host("h1"), vm("v", "h1"), vm("boots"))
    engine.vms.start("boots")
    engine.hosts.fail("h1")
    engine.advance(10)
    assert engines.where(engine, "boots") == ("unknown", "h1")
    engine.hosts.recover("h1")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "up"
    assert engines.where(engine, "v") == ("up", "h1")
    assert engines.where(engine, "boots") == ("up", "h1")
    assert 163 in engines.codes(engine)


def test_a_blink_that_the_engine_never_saw_leaves_no_trace() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("boots"), vm("ends", "h1"))
    engine.vms.start("boots", host_id="h1")
    engine.vms.shutdown("ends")
    engine.hosts.fail("h1")
    engine.advance(2)
    engine.hosts.recover("h1")
    engine.advance(60)
    assert engines.where(engine, "boots") == ("up", "h1")
    assert engines.where(engine, "ends") == ("down", None)
    assert 12 not in engines.codes(engine)


def test_a_migration_dies_with_its_source() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1", memory_mb=20480))
    free = engines.host(engine, "h2").free_mb
    engine.vms.migrate("v")
    engine.hosts.fail("h1")
    engine.advance(60)
    assert engines.where(engine, "v") == ("down", None)
    assert engines.host(engine, "h2").free_mb == free
    assert [code for code in engines.codes(engine) if code in (63, 64)] == [64]


def test_a_migration_whose_target_dies_goes_elsewhere() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3", free_mb=100), vm("v", "h1", memory_mb=20480))
    engine.vms.migrate("v")
    engine.hosts.fail("h2")
    engine.advance(100)
    assert engines.where(engine, "v") == ("up", "h1")
    assert engines.codes(engine)[:4] == [62, 128, 12, 65]


def test_a_failed_drain_is_tried_again() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    engine.faults.next_migrations(MigrationFault(fail=True))
    engine.hosts.deactivate("h1")
    engine.advance(20)
    assert engines.where(engine, "v") == ("up", "h1")
    assert 140 in engines.codes(engine)
    engine.advance(60)
    assert engines.host(engine, "h1").status == "maintenance"


def test_a_drain_that_the_state_file_found_goes_on() -> None:
    engine = engines.engine(host("h1", status="preparing_for_maintenance"), host("h2"), vm("v", "h1"))
    engine.advance(60)
    assert engines.host(engine, "h1").status == "maintenance"
    assert engines.where(engine, "v") == ("up", "h2")


def test_only_known_hosts_crash() -> None:
    engine = engines.engine(host("h1"))
    with pytest.raises(NotFound):
        engine.hosts.fail("h9")
    with pytest.raises(NotFound):
        engine.hosts.recover("h9")
