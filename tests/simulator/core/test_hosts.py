"""Hosts drain into maintenance, come back, crash and recover."""

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.backend import PROMPT, USUAL, MigrationFault, UpgradeFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import NotFound
from tests.builders import APART, TOGETHER, Part, cluster, group, host, vm
from tests.simulator.core import engines
from tests.simulator.scheduler.conftest import proxy
from tests.simulator.scheduler.proxy import Proxy, reply


def drained(*parts: Part, seconds: float = 30, **options: Any) -> Engine:
    """An engine in which h1 has been ordered into maintenance, so long ago."""
    engine = engines.engine(host("h1"), *parts, **options)
    engine.hosts.deactivate("h1")
    engine.advance(seconds)
    return engine


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
    engine = drained(
        host("h2", free_mb=1500),
        host("h3", free_mb=2500),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", TOGETHER, "a b"),
        seconds=60,
    )
    assert [engines.where(engine, v) for v in "ab"] == [("up", "h3"), ("up", "h3")]


def test_a_vm_that_finds_no_place_holds_the_host_until_it_does() -> None:
    engine = drained(host("h2", free_mb=100), vm("a", "h1"), vm("b", "h2"), seconds=20)
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
    engine.faults.expect(MigrationFault(fail=True))
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


# -- How the engine drains a host: one batch, rules that give way, refusals without a word, and retries.


__all__ = ["proxy"]


def test_hard_rules_between_vms_give_way_and_no_event_says_so() -> None:
    engine = drained(host("h2"), vm("a", "h1"), vm("b", "h2"), group("g", APART, "a b"))
    assert engines.host(engine, "h1").status == "maintenance"
    assert engines.where(engine, "a") == ("up", "h2")
    assert engines.codes(engine) == [67, 620, 63]


def test_a_group_that_fits_no_host_leaves_one_by_one() -> None:
    engine = drained(
        host("h2", free_mb=1500),
        host("h3", free_mb=1500),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", TOGETHER, "a b"),
    )
    assert {engines.where(engine, name) for name in "ab"} == {("up", "h2"), ("up", "h3")}


def test_before_version_4_3_they_hold_the_host() -> None:
    engine = drained(
        cluster(compatibility="4.2"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("g", APART, "a b")
    )
    assert engines.host(engine, "h1").status == "preparing_for_maintenance"
    assert engines.codes(engine)[0] == 602


def test_rules_between_vms_and_hosts_hold_one_vm_and_the_others_go() -> None:
    engine = drained(
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", hosts_rule=TOGETHER, vms="a", hosts="h1"),
        seconds=20,
    )
    assert engines.where(engine, "a") == ("up", "h1")
    assert engines.where(engine, "b") == ("up", "h2")
    assert engines.codes(engine) == [67, 602, 63]


def test_one_vm_that_may_not_migrate_fails_all() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"))
    engine.vms.stop("b")
    engine.hosts.deactivate("h1")
    engine.advance(3)
    assert engines.where(engine, "a") == ("up", "h1")
    assert engines.codes(engine)[:2] == [33, 602]
    engine.advance(60)
    assert engines.host(engine, "h1").status == "maintenance"


def test_what_a_user_forces_the_engine_refuses_itself_later() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1", migratable=False))
    engine.faults.expect(MigrationFault(fail=True), count=9)
    engine.hosts.deactivate("h1")
    engine.advance(200)
    assert engines.where(engine, "a") == ("up", "h1")
    codes = engines.codes(engine)
    assert codes[:2] == [67, 620]
    assert codes.count(17) >= 2
    assert set(codes) == {67, 620, 128, 140, 17}
    engine.faults.clear()
    engine.hosts.deactivate("h1")
    engine.advance(30)
    assert engines.host(engine, "h1").status == "maintenance"


def test_incoming_migrations_are_cancelled() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h2"))
    engine.vms.migrate("a", host_id="h1")
    engine.hosts.deactivate("h1")
    engine.advance(30)
    assert engines.where(engine, "a") == ("up", "h2")
    assert engines.host(engine, "h1").status == "maintenance"
    assert engines.codes(engine) == [62, 620]


def test_what_only_an_external_filter_refuses_stays_without_a_word(proxy: Proxy) -> None:
    proxy.run_filters = lambda names, hosts, vm, properties: reply([] if vm == "a" else hosts)
    engine = engines.engine(
        cluster(scheduling_policy=SchedulingPolicy(filters=("AffinityFilter",))),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        proxy=proxy.url,
    )
    engine.hosts.deactivate("h1")
    engine.advance(200)
    assert engines.host(engine, "h1").status == "preparing_for_maintenance"
    assert [engines.where(engine, name) for name in "ab"] == [("up", "h1"), ("up", "h2")]
    assert set(engines.codes(engine)) == {67, 620, 63, 15}


def test_an_upgrade_that_cannot_empty_the_host_gives_up() -> None:
    engine = engines.engine(host("h1"), host("h2", free_mb=10), vm("a", "h1"))
    _find_updates(engine, "h1")
    engine.host_upgrades.upgrade("h1")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "up"
    assert engines.codes(engine)[-3:] == [840, 17, 841]


def test_an_installation_that_fails_leaves_the_host_down() -> None:
    engine = engines.engine(host("h1", status="maintenance"))
    _find_updates(engine, "h1")
    engine.faults.expect(UpgradeFault(fail=True), identity="h1")
    engine.host_upgrades.upgrade("h1")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "install_failed"
    assert engines.codes(engine)[-2:] == [840, 841]


def test_a_host_that_stays_away_is_waited_for_and_comes_up_when_it_recovers() -> None:
    engine = engines.engine(host("h1", status="maintenance"))
    _find_updates(engine, "h1")
    engine.faults.expect(UpgradeFault(stay_away=True))
    engine.host_upgrades.upgrade("h1")
    engine.advance(500)
    assert engines.host(engine, "h1").status == "reboot"
    engine.advance(200)
    assert engines.host(engine, "h1").status == "non_responsive"
    engine.hosts.recover("h1")
    assert engines.host(engine, "h1").status == "up"
    assert engines.codes(engine)[-5:] == [840, 888, 197, 12, 13]


def _find_updates(engine: Engine, host_id: str) -> None:
    engine.host_upgrades.offer(host_id)
    engine.host_upgrades.check(host_id)
    engine.advance(3)
