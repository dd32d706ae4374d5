"""Hosts drain into maintenance, come back, crash, recover and are upgraded."""

import pytest
from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.backend import PROMPT, USUAL, MigrationFault, UpgradeFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import NotFound
from tests.builders import APART, TOGETHER, Part, cluster, group, host, vm
from tests.simulator.core.engines import codes, engine, job, refused, shown
from tests.simulator.core.engines import host as host_of
from tests.simulator.scheduler.conftest import proxy
from tests.simulator.scheduler.proxy import Proxy, reply

__all__ = ["proxy"]

PREPARING = "preparing_for_maintenance"
BOTH = (vm("a", "h1"), vm("b", "h1"))
A_AND_ANOTHER = (vm("a", "h1"), vm("b", "h2"))


def drained(*parts: Part, seconds: float = 60) -> Engine:
    """An engine in which h1 has been ordered into maintenance, this long ago."""
    made = engine(host("h1"), *parts)
    made.hosts.deactivate("h1")
    made.advance(seconds)
    return made


def test_maintenance_drains_the_host_first() -> None:
    made = engine(host("h1"), host("h2"), *BOTH)
    ordered = made.hosts.deactivate("h1", reason="new disks")
    assert shown(made, "h1") == [PREPARING]
    made.advance(0)
    assert shown(made, "a") == ["migrating h1"]
    made.advance(30)
    assert shown(made, "h1", "a", "b") == ["maintenance", "up h2", "up h2"]
    assert codes(made) == [67, 67, 600, 63, 63]
    assert made.queries.events()[-1].description == (
        "Migration initiated by system (VM: a, Source: h1, Destination: h2, Reason: )."
    )
    assert job(made, ordered.id).status == "finished"


#: What there is besides h1, then the status of h1, where its two VMs are, and the first events.
DRAINS: dict[str, tuple[tuple[Part, ...], list[str], list[int]]] = {
    "hard positive groups leave together": (
        (host("h2", free_mb=1500), host("h3", free_mb=2500), *BOTH, group("g", TOGETHER, "a b")),
        ["maintenance", "up h3", "up h3"],
        [67, 67, 620],
    ),
    "a group that fits no host leaves one by one": (
        (host("h2", free_mb=1500), host("h3", free_mb=1500), *BOTH, group("g", TOGETHER, "a b")),
        ["maintenance", "up h2", "up h3"],
        [67, 67, 620],
    ),
    "hard rules between VMs give way, and no event says so": (
        (host("h2"), *A_AND_ANOTHER, group("g", APART, "a b")),
        ["maintenance", "up h2", "up h2"],
        [67, 620, 63],
    ),
    "before version 4.3 they hold the host": (
        (cluster(compatibility="4.2"), host("h2"), *A_AND_ANOTHER, group("g", APART, "a b")),
        [PREPARING, "up h1", "up h2"],
        [602],
    ),
    "rules between VMs and hosts hold one VM, and the others go": (
        (host("h2"), *BOTH, group("g", hosts_rule=TOGETHER, vms="a", hosts="h1")),
        [PREPARING, "up h1", "up h2"],
        [67, 602, 63],
    ),
}


@pytest.mark.parametrize(("parts", "found", "reported"), DRAINS.values(), ids=DRAINS)
def test_how_a_host_is_drained(parts: tuple[Part, ...], found: list[str], reported: list[int]) -> None:
    made = drained(*parts)
    assert shown(made, "h1", "a", "b") == found
    assert codes(made)[: len(reported)] == reported


def test_a_vm_that_finds_no_place_holds_the_host_until_it_does() -> None:
    made = drained(host("h2", free_mb=100), *A_AND_ANOTHER, seconds=20)
    assert (shown(made, "h1"), codes(made)) == ([PREPARING], [602])
    made.vms.stop("b")
    made.advance(60)
    assert shown(made, "h1", "a") == ["maintenance", "up h2"]
    assert codes(made) == [602, 33, 61, 67, 15, 63]


#: What is not to go into maintenance, by the engine's words for it.
UNFIT: dict[str, tuple[Part, ...]] = {
    "Host is already in Maintenance mode": (host("h1", status="maintenance"),),
    "mode, Host is not operational": (host("h1", status="connecting"), vm("a", "h1")),
    "still has running VMs on it": (host("h1", status="non_responsive"), vm("a", "h1")),
    "non-migratable VMs are: a": (host("h1"), vm("a", "h1", migratable=False, pinned_hosts=("h1",))),
    "at least one Host in UP state: cluster1": (host("h1"), vm("a", "h1"), host("h3", status="maintenance")),
}


@pytest.mark.parametrize("words", UNFIT)
def test_maintenance_is_refused(words: str) -> None:
    other = () if "UP" in words else (host("h2"),)
    refusal = refused(engine(*UNFIT[words], *other).hosts.deactivate, "h1")
    assert refusal.http_status == 409
    assert words in refusal.detail


@pytest.mark.parametrize("status", ["up", "non_responsive", "installing", "reboot"])
def test_activation_is_refused(status: str) -> None:
    """Of a host in any other status it is not, be its installation failed."""
    made = engine(host("h1", status=status), host("h2", status="install_failed"))
    assert refused(made.hosts.activate, "h1").http_status == 409
    made.hosts.activate("h2")
    made.advance(10)
    assert shown(made, "h2") == ["up"]


def test_activation_takes_time() -> None:
    made = engine(host("h1", status="maintenance"))
    made.hosts.activate("h1")
    assert shown(made, "h1") == ["unassigned"]
    made.advance(10)
    assert (shown(made, "h1"), codes(made)) == (["up"], [16, 835, 13])
    assert made.queries.events()[0].description == "Status of host h1 was set to Up."


def test_activation_ends_preparing_for_maintenance() -> None:
    made = engine(host("h1"), host("h2"), vm("a", "h1"))
    ordered = made.hosts.deactivate("h1")
    made.hosts.activate("h1")
    made.advance(60)
    assert shown(made, "h1", "a") == ["up", "up h1"]
    assert job(made, ordered.id).status == "aborted"


def test_a_failed_drain_is_tried_again() -> None:
    made = engine(host("h1"), host("h2"), vm("v", "h1"))
    made.faults.expect(MigrationFault(fail=True))
    made.hosts.deactivate("h1")
    made.advance(20)
    assert shown(made, "v") == ["up h1"]
    assert 140 in codes(made)
    made.advance(60)
    assert shown(made, "h1") == ["maintenance"]


def test_a_drain_that_the_state_file_found_goes_on() -> None:
    made = engine(host("h1", status=PREPARING), host("h2"), vm("v", "h1"))
    made.advance(60)
    assert shown(made, "h1", "v") == ["maintenance", "up h2"]


def test_one_vm_that_may_not_migrate_fails_all() -> None:
    made = engine(host("h1"), host("h2"), *BOTH)
    made.vms.stop("b")
    made.hosts.deactivate("h1")
    made.advance(3)
    assert (shown(made, "a"), codes(made)[:2]) == (["up h1"], [33, 602])
    made.advance(60)
    assert shown(made, "h1") == ["maintenance"]


def test_what_a_user_forces_the_engine_refuses_itself_later() -> None:
    made = engine(host("h1"), host("h2"), vm("a", "h1", migratable=False))
    made.faults.expect(MigrationFault(fail=True), count=9)
    made.hosts.deactivate("h1")
    made.advance(200)
    assert shown(made, "a") == ["up h1"]
    reported = codes(made)
    assert reported[:2] == [67, 620]
    assert reported.count(17) >= 2
    assert set(reported) == {67, 620, 128, 140, 17}
    made.faults.clear()
    made.hosts.deactivate("h1")
    made.advance(30)
    assert shown(made, "h1") == ["maintenance"]


def test_incoming_migrations_are_cancelled() -> None:
    made = engine(host("h1"), host("h2"), vm("a", "h2"))
    made.vms.migrate("a", host_id="h1")
    made.hosts.deactivate("h1")
    made.advance(30)
    assert shown(made, "h1", "a") == ["maintenance", "up h2"]
    assert codes(made) == [62, 620]


def test_a_closure_that_an_external_filter_refuses_is_accepted_and_stays(proxy: Proxy) -> None:
    """Its command succeeds where validation finds hosts: MigrateMultipleVmsCommand, which logs nothing."""
    proxy.run_filters = lambda names, hosts, vm, properties: reply([])
    asking = cluster(scheduling_policy=SchedulingPolicy(filters=("AffinityFilter",)))
    made = engine(asking, host("h1"), host("h2"), *BOTH, group("g", TOGETHER, "a b"), proxy=proxy.url)
    ordered = made.vms.migrate("a", host_id="h2", closure=True)
    assert (job(made, ordered.id).status, codes(made)) == ("finished", [])
    assert shown(made, "a", "b") == ["up h1", "up h1"]


def test_what_only_an_external_filter_refuses_stays_without_a_word(proxy: Proxy) -> None:
    proxy.run_filters = lambda names, hosts, vm, properties: reply([] if vm == "a" else hosts)
    asking = cluster(scheduling_policy=SchedulingPolicy(filters=("AffinityFilter",)))
    made = engine(asking, host("h1"), host("h2"), *BOTH, proxy=proxy.url)
    made.hosts.deactivate("h1")
    made.advance(200)
    assert shown(made, "h1", "a", "b") == [PREPARING, "up h1", "up h2"]
    assert set(codes(made)) == {67, 620, 63, 15}


def test_the_engine_counts_the_memory_of_vms_that_come_and_go_from_time_to_time() -> None:
    """Who comes is deducted at once, but for the moment from the arrival on; who left counts as long."""
    vms = (vm("a", "h1", memory_mb=4096), vm("b", memory_mb=4096))
    made = engine(host("h1"), host("h2"), *vms, settings=replace(PROMPT, memory_count_seconds=15.0), seed=1)

    def deducted(seconds: float) -> list[bool]:
        made.advance(seconds)
        now = [host_of(made, name).as_reported().free_mb for name in ("h1", "h2")]
        return [one < before - 4000 for one, before in zip(now, empty, strict=True)]

    empty = [host_of(made, "h1").free_mb + 4096, host_of(made, "h2").free_mb]
    made.vms.migrate("a", host_id="h2")
    assert deducted(2) == [True, True]
    assert (deducted(10), shown(made, "a")) == ([True, False], ["up h2"])
    assert deducted(5) == [False, True]


# -- Hosts crash, and come back in time or not.
def crashed(*parts: Part, connecting_seconds: float = PROMPT.host_connecting_seconds) -> Engine:
    """An engine whose host h1 has just crashed."""
    made = engine(host("h1"), *parts, settings=replace(PROMPT, host_connecting_seconds=connecting_seconds))
    made.hosts.fail("h1")
    return made


def test_a_crashed_host_is_fenced_and_its_highly_available_vms_restart() -> None:
    made = crashed(host("h2"), vm("ha", "h1", ha=True), vm("v", "h1"))
    made.advance(4)
    assert shown(made, "h1") == ["up"]
    made.advance(2)
    assert shown(made, "h1", "v") == ["non_responsive", "unknown h1"]
    made.advance(60)
    assert shown(made, "v", "ha") == ["down", "up h2"]
    assert codes(made) == [142, 142, 12, 14, 143, 143, 506, 506]
    made.hosts.recover("h1")
    assert shown(made, "h1") == ["up"]


def test_a_host_without_an_answer_is_connecting_for_80_s_as_the_engines() -> None:
    """Recorded: 3.5 s after the crash 10802, and after 80 s 142 for each VM, then 12."""
    made = crashed(host("h2"), vm("v", "h1"), connecting_seconds=USUAL.host_connecting_seconds)
    made.advance(6)
    assert (shown(made, "h1", "v"), codes(made)) == (["connecting", "up h1"], [10802])
    made.advance(73)
    assert shown(made, "h1") == ["connecting"]
    made.advance(2)
    assert (shown(made, "h1", "v"), codes(made)) == (["non_responsive", "unknown h1"], [10802, 142, 12])


def test_a_host_that_answers_again_while_it_is_connecting_is_up_and_lost_nothing() -> None:
    made = crashed(vm("v", "h1"), connecting_seconds=75.0)
    made.advance(30)
    made.hosts.recover("h1")
    made.advance(100)
    assert (shown(made, "h1", "v"), codes(made)) == (["up", "up h1"], [10802])


def test_a_restart_waits_for_a_host() -> None:
    made = crashed(vm("ha", "h1", ha=True))
    made.advance(100)
    assert shown(made, "ha") == ["down"]
    assert 507 in codes(made)
    made.hosts.recover("h1")
    made.advance(60)
    assert shown(made, "ha") == ["up h1"]


def test_a_host_that_comes_back_in_time_has_its_vms_still() -> None:
    made = engine(host("h1"), vm("v", "h1"), vm("boots"))
    made.vms.start("boots")
    made.hosts.fail("h1")
    made.advance(10)
    assert shown(made, "boots") == ["unknown h1"]
    made.hosts.recover("h1")
    made.advance(60)
    assert shown(made, "h1", "v", "boots") == ["up", "up h1", "up h1"]
    assert 163 in codes(made)


def test_a_blink_that_the_engine_never_saw_leaves_no_trace() -> None:
    made = engine(host("h1"), host("h2"), vm("boots"), vm("ends", "h1"))
    made.vms.start("boots", host_id="h1")
    made.vms.shutdown("ends")
    made.hosts.fail("h1")
    made.advance(2)
    made.hosts.recover("h1")
    made.advance(60)
    assert shown(made, "boots", "ends") == ["up h1", "down"]
    assert 12 not in codes(made)


def test_a_migration_dies_with_its_source() -> None:
    made = engine(host("h1"), host("h2"), vm("v", "h1", memory_mb=20480))
    free = host_of(made, "h2").free_mb
    made.vms.migrate("v")
    made.hosts.fail("h1")
    made.advance(60)
    assert (shown(made, "v"), host_of(made, "h2").free_mb) == (["down"], free)
    assert [code for code in codes(made) if code in (63, 64)] == [64]


def test_a_migration_whose_target_dies_goes_elsewhere() -> None:
    made = engine(host("h1"), host("h2"), host("h3", free_mb=100), vm("v", "h1", memory_mb=20480))
    made.vms.migrate("v")
    made.hosts.fail("h2")
    made.advance(100)
    assert (shown(made, "v"), codes(made)[:4]) == (["up h1"], [62, 128, 12, 65])


def test_only_known_hosts_crash() -> None:
    made = engine(host("h1"))
    for command in (made.hosts.fail, made.hosts.recover):
        with pytest.raises(NotFound):
            command("h9")


# -- Upgrades that fail. Those that succeed: `tests/simulator/http/test_migration.py`.
def upgraded(*parts: Part, fault: UpgradeFault | None = None) -> Engine:
    """An engine that has begun to upgrade h1."""
    made = engine(*parts)
    made.host_upgrades.offer("h1")
    made.host_upgrades.check("h1")
    made.advance(3)
    if fault:
        made.faults.expect(fault, identity="h1")
    made.host_upgrades.upgrade("h1")
    return made


def test_an_upgrade_that_cannot_empty_the_host_gives_up() -> None:
    made = upgraded(host("h1"), host("h2", free_mb=10), vm("a", "h1"))
    made.advance(60)
    assert (shown(made, "h1"), codes(made)[-3:]) == (["up"], [840, 17, 841])


def test_an_installation_that_fails_leaves_the_host_down_and_may_be_repeated() -> None:
    made = upgraded(host("h1", status="maintenance"), fault=UpgradeFault(fail=True))
    made.advance(60)
    assert (shown(made, "h1"), codes(made)[-2:]) == (["install_failed"], [840, 841])
    made.host_upgrades.upgrade("h1")
    made.advance(60)
    assert shown(made, "h1") == ["up"]


def test_a_host_that_stays_away_is_waited_for_and_comes_up_when_it_recovers() -> None:
    made = upgraded(host("h1", status="maintenance"), fault=UpgradeFault(stay_away=True))
    made.advance(500)
    assert shown(made, "h1") == ["reboot"]
    made.advance(200)
    assert shown(made, "h1") == ["non_responsive"]
    made.hosts.recover("h1")
    assert shown(made, "h1") == ["up"]
    assert codes(made)[-5:] == [840, 888, 197, 12, 13]
