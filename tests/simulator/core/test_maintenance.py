"""How the engine drains a host: one batch, rules that give way, refusals without a word, and retries."""

from __future__ import annotations

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import MigrationFault, UpgradeFault
from tests.builders import APART, TOGETHER, cluster, group, host, vm
from tests.simulator.core import engines
from tests.simulator.scheduler.conftest import proxy
from tests.simulator.scheduler.proxy import Proxy, reply

__all__ = ["proxy"]


def test_hard_rules_between_vms_give_way_and_no_event_says_so() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("g", APART, "a b"))
    engine.hosts.deactivate("h1")
    engine.advance(30)
    assert engines.host(engine, "h1").status == "maintenance"
    assert engines.where(engine, "a") == ("up", "h2")
    assert engines.codes(engine) == [67, 620, 63]


def test_a_group_that_fits_no_host_leaves_one_by_one() -> None:
    engine = engines.engine(
        host("h1"),
        host("h2", free_mb=1500),
        host("h3", free_mb=1500),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", TOGETHER, "a b"),
    )
    engine.hosts.deactivate("h1")
    engine.advance(30)
    assert {engines.where(engine, name) for name in "ab"} == {("up", "h2"), ("up", "h3")}


def test_before_version_4_3_they_hold_the_host() -> None:
    engine = engines.engine(
        cluster(compatibility="4.2"),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("g", APART, "a b"),
    )
    engine.hosts.deactivate("h1")
    engine.advance(30)
    assert engines.host(engine, "h1").status == "preparing_for_maintenance"
    assert engines.codes(engine)[0] == 602


def test_rules_between_vms_and_hosts_hold_one_vm_and_the_others_go() -> None:
    engine = engines.engine(
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", hosts_rule=TOGETHER, vms="a", hosts="h1"),
    )
    engine.hosts.deactivate("h1")
    engine.advance(20)
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
    engine.faults.next_migrations(MigrationFault(fail=True), count=9)
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
    engine.faults.next_upgrades(UpgradeFault(fail=True), host_id="h1")
    engine.host_upgrades.upgrade("h1")
    engine.advance(60)
    assert engines.host(engine, "h1").status == "install_failed"
    assert engines.codes(engine)[-2:] == [840, 841]


def test_a_host_that_stays_away_is_waited_for_and_comes_up_when_it_recovers() -> None:
    engine = engines.engine(host("h1", status="maintenance"))
    _find_updates(engine, "h1")
    engine.faults.next_upgrades(UpgradeFault(stay_away=True))
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
