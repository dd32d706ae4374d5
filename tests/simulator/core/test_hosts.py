"""Hosts drain into maintenance, come back, crash, recover and are upgraded."""

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.backend import PROMPT, USUAL, MigrationFault
from ovirt_simulator.core.messages import NotFound
from tests.builders import APART, TOGETHER, Part, cluster, group, host, vm
from tests.simulator.core.engines import codes, engine, job, play, shown
from tests.simulator.core.engines import host as host_of
from tests.simulator.scheduler.conftest import proxy
from tests.simulator.scheduler.proxy import Proxy, reply

__all__ = ["proxy"]

PREPARING, NO_ACTIVATION = "preparing_for_maintenance", "refused 409 hosts.activate h1"
BOTH = (vm("a", "h1"), vm("b", "h1"))
A_AND_ANOTHER = (vm("a", "h1"), vm("b", "h2"))


H1, H2 = host("h1"), host("h2")
TIED, PARTED = group("g", TOGETHER, "a b"), group("g", APART, "a b")
DRAINED = "hosts.deactivate h1; 60"
UPGRADED = "host_upgrades.offer h1; host_upgrades.check h1; 3"
#: What is not to go into maintenance, by the engine's words for it.
UNFIT: dict[str, tuple[Part, ...]] = {
    "Host is already in Maintenance mode": (host("h1", status="maintenance"), H2),
    "mode, Host is not operational": (host("h1", status="connecting"), H2, vm("a", "h1")),
    "still has running VMs on it": (host("h1", status="non_responsive"), H2, vm("a", "h1")),
    "non-migratable VMs are: a": (H1, H2, vm("a", "h1", migratable=False, pinned_hosts=("h1",))),
    "at least one Host in UP state: cluster1": (H1, vm("a", "h1"), host("h3", status="maintenance")),
}
#: What there is, and what happens then: `engines.play` reads it.
STORIES: dict[str, tuple[Any, ...]] = {
    "maintenance drains the host first": (
        (H1, H2, *BOTH),
        f"hosts.deactivate h1 reason=disks; h1 is {PREPARING}; 0; a is migrating h1; 30; job is finished",
        "h1 is maintenance; a is up h2; b is up h2; events 67 67 600 63 63",
    ),
    "activation takes time": (
        (host("h1", status="maintenance"),),
        "hosts.activate h1; h1 is unassigned; 10; h1 is up; events 16 835 13",
    ),
    "hard positive groups leave together": (
        (H1, host("h2", free_mb=1500), host("h3", free_mb=2500), *BOTH, TIED),
        f"{DRAINED}; h1 is maintenance; a is up h3; b is up h3; events 67 67 620 ...",
    ),
    "a group that fits no host leaves one by one": (
        (H1, host("h2", free_mb=1500), host("h3", free_mb=1500), *BOTH, TIED),
        f"{DRAINED}; h1 is maintenance; a is up h2; b is up h3; events 67 67 620 ...",
    ),
    "hard rules between VMs give way, and no event says so": (
        (H1, H2, *A_AND_ANOTHER, PARTED),
        f"{DRAINED}; h1 is maintenance; a is up h2; b is up h2; events 67 620 63 ...",
    ),
    "before version 4.3 they hold the host": (
        (cluster(compatibility="4.2"), H1, H2, *A_AND_ANOTHER, PARTED),
        f"{DRAINED}; h1 is {PREPARING}; a is up h1; b is up h2; events 602 ...",
    ),
    "rules between VMs and hosts hold one VM, and the others go": (
        (H1, H2, *BOTH, group("g", hosts_rule=TOGETHER, vms="a", hosts="h1")),
        f"{DRAINED}; h1 is {PREPARING}; a is up h1; b is up h2; events 67 602 63 ...",
    ),
    "a VM that finds no place holds the host until it does": (
        (H1, host("h2", free_mb=100), *A_AND_ANOTHER),
        f"hosts.deactivate h1; 20; h1 is {PREPARING}; events 602",
        "vms.stop b; 60; h1 is maintenance; a is up h2; events 602 33 61 67 15 63",
    ),
    **{
        f"no maintenance: {words}": (parts, f"refused 409 hosts.deactivate h1: {words}")
        for words, parts in UNFIT.items()
    },
    **{
        f"no activation of a host that is {status}": ((host("h1", status=status),), NO_ACTIVATION)
        for status in ("up", "non_responsive", "installing", "reboot")
    },
    "a host is activated whose installation failed": (
        (host("h1", status="install_failed"),),
        "hosts.activate h1; 10; h1 is up",
    ),
    "activation ends preparing for maintenance": (
        (H1, H2, vm("a", "h1")),
        "hosts.deactivate h1; hosts.activate h1; 60; h1 is up; a is up h1; job is aborted",
    ),
    "a failed drain is tried again": (
        (H1, H2, vm("v", "h1")),
        "fault fail; hosts.deactivate h1; 20; v is up h1; has 140; 60; h1 is maintenance",
    ),
    "a drain that the state file found goes on": (
        (host("h1", status=PREPARING), H2, vm("v", "h1")),
        "60; h1 is maintenance; v is up h2",
    ),
    "one VM that may not migrate fails all": (
        (H1, H2, *BOTH),
        "vms.stop b; hosts.deactivate h1; 3; a is up h1; events 33 602 ...; 60; h1 is maintenance",
    ),
    "incoming migrations are cancelled": (
        (H1, H2, vm("a", "h2")),
        "vms.migrate a host_id=h1; hosts.deactivate h1; 30; h1 is maintenance; a is up h2; events 62 620",
    ),
    "a crashed host is fenced and its highly available VMs restart": (
        (H1, H2, vm("ha", "h1", ha=True), vm("v", "h1")),
        "hosts.fail h1; 4; h1 is up; 2; h1 is non_responsive; v is unknown h1; 60; v is down; ha is up h2",
        "events 142 142 12 14 143 143 506 506; hosts.recover h1; h1 is up",
    ),
    "a restart waits for a host": (
        (H1, vm("ha", "h1", ha=True)),
        "hosts.fail h1; 100; ha is down; has 507; hosts.recover h1; 60; ha is up h1",
    ),
    "a host that comes back in time has its VMs still": (
        (H1, vm("v", "h1"), vm("boots")),
        "vms.start boots; hosts.fail h1; 10; boots is unknown h1",
        "hosts.recover h1; 60; h1 is up; v is up h1; boots is up h1; has 163",
    ),
    "a blink that the engine never saw leaves no trace": (
        (H1, H2, vm("boots"), vm("ends", "h1")),
        "vms.start boots host_id=h1; vms.shutdown ends; hosts.fail h1; 2; hosts.recover h1; 60",
        "boots is up h1; ends is down; lacks 12",
    ),
    "a migration whose target dies goes elsewhere": (
        (H1, H2, host("h3", free_mb=100), vm("v", "h1", memory_mb=20480)),
        "vms.migrate v; hosts.fail h2; 100; v is up h1; events 62 128 12 65 ...",
    ),
    "a host without updates is not upgraded": (
        (H1,),
        "host_upgrades.check h1; 3; events 884 885; refused 409 host_upgrades.upgrade h1: no available",
    ),
    "VMs move away for an upgrade, and the host comes back": (
        (H1, H2, vm("a", "h1")),
        f"{UPGRADED}; host_upgrades.upgrade h1; 8; a is up h2; 60; h1 is up; events ... 67 15 63 888 197 13",
    ),
    "an upgrade that cannot empty the host gives up": (
        (H1, host("h2", free_mb=10), vm("a", "h1")),
        f"{UPGRADED}; host_upgrades.upgrade h1; 60; h1 is up; events ... 840 17 841",
    ),
    "an installation that fails leaves the host down and may be repeated": (
        (host("h1", status="maintenance"),),
        f"{UPGRADED}; upgrade_fault fail identity=h1; host_upgrades.upgrade h1; 60; h1 is install_failed",
        "events ... 840 841; host_upgrades.upgrade h1; 60; h1 is up",
    ),
    "a host that stays away is waited for and comes up when it recovers": (
        (host("h1", status="maintenance"),),
        f"{UPGRADED}; upgrade_fault stay_away identity=h1; host_upgrades.upgrade h1; 500; h1 is reboot; 200",
        "h1 is non_responsive; hosts.recover h1; h1 is up; events ... 840 888 197 12 13",
    ),
}


@pytest.mark.parametrize("row", STORIES.values(), ids=STORIES)
def test_what_becomes_of_hosts(row: tuple[Any, ...]) -> None:
    parts, *story = row
    play(engine(*parts), *story)


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
    assert (deducted(2), deducted(10), shown(made, "a")) == ([True, True], [True, False], ["up h2"])
    assert deducted(5) == [False, True]


USUAL_SECONDS = USUAL.host_connecting_seconds


@pytest.mark.parametrize(
    ("seconds", "story"),
    [
        # Recorded: 3.5 s after the crash 10802, and after 80 s 142 for each VM, then 12.
        (USUAL_SECONDS, "6; h1 is connecting; v is up h1; events 10802; 73; h1 is connecting"),
        (USUAL_SECONDS, "81; h1 is non_responsive; v is unknown h1; events 10802 142 12"),
        (75.0, "30; hosts.recover h1; 100; h1 is up; v is up h1; events 10802"),
    ],
    ids=["connecting for 80 s as the engine's", "and no longer", "up if it answers, and nothing is lost"],
)
def test_a_host_without_an_answer_is_connecting(seconds: float, story: str) -> None:
    settings = replace(PROMPT, host_connecting_seconds=seconds)
    play(engine(H1, H2, vm("v", "h1"), settings=settings), f"hosts.fail h1; {story}")


def test_a_migration_dies_with_its_source() -> None:
    made = engine(host("h1"), host("h2"), vm("v", "h1", memory_mb=20480))
    free = host_of(made, "h2").free_mb
    made.vms.migrate("v")
    made.hosts.fail("h1")
    made.advance(60)
    assert (shown(made, "v"), host_of(made, "h2").free_mb) == (["down"], free)
    assert [code for code in codes(made) if code in (63, 64)] == [64]


def test_only_known_hosts_crash() -> None:
    made = engine(host("h1"))
    for command in (made.hosts.fail, made.hosts.recover):
        with pytest.raises(NotFound):
            command("h9")
