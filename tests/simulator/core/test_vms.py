"""VMs start, stop, migrate and are suspended over simulated time."""

from typing import Any

import pytest

from ovirt_simulator.core import messages
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.scheduler.placing import Scheduler
from tests.builders import TOGETHER, group, host, pending, vm
from tests.simulator.core import engines


def test_a_host_is_busier_with_a_vm_than_without() -> None:
    engine = engines.engine(
        host("h1", cpu_percent=10, load_average_5m=3, cores=4, memory_mb=10000, memory_free_mb=8000),
        vm("v", vcpus=2, usage_cpu_percent=50, memory_mb=2000, usage_mem_percent=50),
    )
    engine.vms.start("v")
    engine.advance(10)
    busy = engines.host(engine, "h1")
    assert (busy.cpu_percent, busy.load_average_5m) == (pytest.approx(10 + 2 * 50 / 4), 3 + 1)
    assert busy.memory_free_mb == 8000 - 1000


H1, H2 = host("h1"), host("h2")
UP, SUSPENDED = (H1, vm("v", "h1")), (H1, vm("v", status="suspended"))
MOVING = (H1, H2, vm("v", "h1"))
#: Of highly available VMs; until a crash is seen and fenced.
PRIORITIES, FENCED = {"a": 1, "b": 50, "c": 100, "d": 50}, "hosts.fail h1; 35"
#: What no VM in this status is asked for.
REFUSED = {
    **dict.fromkeys(("saving_state", "restoring_state"), ("stop shutdown", "saving/restoring state")),
    **dict.fromkeys(("image_locked", "unknown"), ("stop shutdown", "VM is not running")),
    **dict.fromkeys(("down", "powering_up"), ("suspend", "VM is not up")),
    "wait_for_launch": ("suspend", "WaitForLaunch"),
    "migrating": ("suspend", "VM v is being migrated"),
}
#: What there is, and what happens then: `engines.play` reads it.
STORIES: dict[str, tuple[Any, ...]] = {
    "a start": (
        (H1, vm("v")),
        "vms.start v; v is wait_for_launch h1; 1; v is powering_up h1; 4; v is up h1; events 153 32",
        "job is finished",
    ),
    "a stop": (UP, "vms.stop v; v is powering_down h1; 10; v is down; events 33 61"),
    "a shutdown": (UP, "vms.shutdown v; v is powering_down h1; 10; v is down; events 73 61"),
    "a suspension": (UP, "vms.suspend v; v is saving_state h1; 10; v is suspended; events 501 503"),
    "it resumes": (SUSPENDED, "vms.start v; v is restoring_state h1; 10; v is up h1; events 153 32"),
    "a suspended one stops": (SUSPENDED, "vms.stop v; v is down; 10; v is down; events 111"),
    "a suspended one shuts down": (SUSPENDED, "vms.shutdown v; v is down; 10; v is down; events 111"),
    "a stop ends its start": ((H1, vm("v")), "vms.start v; 2; vms.stop v; 20; v is down; lacks 32"),
    **{
        f"no {command} while {status}": (
            (H1, vm("v", None if status == "down" else "h1", status=status)),
            f"refused 409 vms.{command} v: {words}; no_job Stop Shut",
        )
        for status, (commands, words) in REFUSED.items()
        for command in commands.split()
    },
    "a crashed one restarts if it is highly available": (
        (H1, vm("ha", "h1", ha=True), vm("other", "h1")),
        "vms.crash ha; vms.crash other; ha is down; 20; ha is up h1; other is down",
        "events 119 9602 119 506 506",
    ),
    # Highly available VMs of a crashed host restart by their priorities (the engine's HaAutoStartVmsRunner).
    "a lower priority waits until all of a higher one are up": (
        (H1, H2, *(vm(name, "h1", ha=True, ha_priority=number) for name, number in PRIORITIES.items())),
        f"{FENCED}; 1; restarted c; 3; restarted c; c is powering_up h2; 3; restarted c b d; a is down; 10",
        "restarted c b d a",
    ),
    "nobody waits forever for one that no host takes": (
        (
            H1,
            host("h2", free_mb=4_000),
            vm("large", "h1", ha=True, ha_priority=100, memory_mb=20_000),
            vm("small", "h1", ha=True),
        ),
        f"{FENCED}; 595; restarted; 15; restarted small; large is down",
    ),
    "the priority is that of the moment": (
        (H1, vm("a", "h1", ha=True, ha_priority=100), vm("b", "h1", ha=True, ha_priority=1)),
        "hosts.fail h1; 60; vms.edit b ha_priority=100; vms.edit a ha_priority=1; hosts.recover h1; 60",
        "restarted b a",
    ),
    "who is no longer highly available does not restart": (
        (H1, vm("a", "h1", ha=True, ha_priority=100), vm("b", "h1", ha=True)),
        f"{FENCED}; hosts.recover h1; vms.edit a ha=no; 60; restarted b; a is down",
    ),
    "a priority is between 0 and 100": (
        UP,
        "refused 400 vms.edit v ha_priority=101: Illegal priority value: it must be between 0 and 100.",
        "vms.edit v ha_priority=0; vms.edit v ha_priority=100",
    ),
    "one that migrates is locked": (
        (H1, H2, host("h3"), vm("v", "h1")),
        "vms.migrate v; refused 409 vms.migrate v host_id=h3: [Cannot migrate VM. VM v is being migrated.]",
        "30; vms.migrate v; events 62 63 62",
    ),
    "one that migrates can be stopped, as the engine's stop takes no lock": (
        MOVING,
        "vms.migrate v; vms.stop v; 30; v is down; events 62 33 61; job is failed; vms.start v",
    ),
    "a failure is tried again on another host": (
        (H1, H2, host("h3"), vm("v", "h1")),
        "fault fail; vms.migrate v; 30; v is up h2 or up h3; events 62 128 62 63",
    ),
    "a failure towards a named host is final": (
        (H1, H2, host("h3"), vm("v", "h1")),
        "fault fail identity=v; vms.migrate v host_id=h2; 60; v is up h1; events 62 120",
    ),
    "slow, hanging and refused migrations": (
        (H1, H2, vm("s", "h1"), vm("h", "h1"), vm("r", "h1")),
        "fault slow=10 identity=s; fault hang identity=h; fault refuse identity=r; vms.migrate s",
        "vms.migrate h; refused 400 vms.migrate r; 20; s is migrating h1; 3600; s is up h2",
        "h is migrating h1; r is up h1; vms.migrate r; r is migrating h1",
    ),
    "to cancel leaves it where it is": (
        MOVING,
        "vms.migrate v; 1; vms.cancel_migration v; 60; v is up h1; events 62 161",
        "refused 409 vms.cancel_migration v: [Cannot cancel migration for non migrating VM.]",
    ),
    "one that is handed over cannot be cancelled": (
        MOVING,
        "vms.migrate v; 3.2; v is migrating h2; refused 409 vms.cancel_migration v; 5; v is up h2",
    ),
}


@pytest.mark.parametrize("row", STORIES.values(), ids=STORIES)
def test_what_becomes_of_vms(row: tuple[Any, ...]) -> None:
    parts, *story = row
    engines.play(engines.engine(*parts), *story)


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
    assert (engines.refused(engine.vms.start, "nobody").http_status, engines.codes(engine)) == (400, [54, 54])


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


# -- What ends a VM: what the engine lets through, what it skips, and what it refuses.
@pytest.mark.parametrize("command", ["stop", "shutdown"])
def test_ending_what_is_down_succeeds_and_does_nothing(command: str) -> None:
    engine = engines.engine(host("h"), vm("v"))
    job = getattr(engine.vms, command)("v")
    (event,) = engine.queries.events()
    skipped = f"VM v is already Down, {command.capitalize()} VM was skipped. User: admin@internal-authz."
    assert (event.code, event.severity, event.description) == (254, "normal", skipped)
    done = engines.job(engine, job.id)
    assert (done.status, engines.where(engine, "v")) == ("finished", ("down", None))


def test_a_command_lets_go_of_no_vm_that_another_holds_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration has ended, and somebody has begun the next one, before the first command returns."""
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    schedule, locks = Scheduler.schedule, engine._backend.vm_locks
    other = messages.vm_being_migrated("v")

    def slow(self: Scheduler, *arguments: Any) -> None:
        schedule(self, *arguments)
        engine.advance(60)
        locks["v"] = other

    monkeypatch.setattr(Scheduler, "schedule", slow)
    engine.vms.migrate("v")
    assert (engines.where(engine, "v"), locks["v"]) == (("up", "h2"), other)
    locks.clear()
    engine.vms.stop("v")
    engine.advance(60)
    engine.vms.start("v")
    assert locks["v"] is other


@pytest.mark.parametrize("others", range(1, 7))
def test_three_more_hosts_are_tried_after_the_first(others: int) -> None:
    engine = engines.engine(host("h0"), *(host(f"h{at}") for at in range(1, others + 1)), vm("v", "h0"))
    free = engines.host(engine, "h1").free_mb
    engine.faults.expect(MigrationFault(fail=True), count=99)
    job = engine.vms.migrate("v")
    engine.advance(300)
    assert (engines.shown(engine, "v"), engines.host(engine, "h1").free_mb) == (["up h0"], free)
    assert engines.job(engine, job.id).status == "failed"
    tries = min(others, 1 + 3)
    # After a failure it is said that another is tried, whether there is one or not.
    failures = tries if others <= 3 else tries - 1
    assert [engines.codes(engine).count(code) for code in (62, 128, 65)] == [tries, failures, 1]


def test_a_closure_moves_together() -> None:
    tied = (group("g1", TOGETHER, "a c"), group("g2", TOGETHER, "c b"))
    vms = (vm("a", "h1"), vm("b", "h1"), vm("c"), vm("d", "h1"))
    engine = engines.engine(*map(host, ("h1", "h2", "h3")), *vms, *tied)
    engine.vms.migrate("a", host_id="h3", closure=True)
    engine.advance(60)
    assert engines.shown(engine, *"abcd") == ["up h3", "up h3", "down", "up h1"]
    engine.hosts.deactivate("h2")
    engine.advance(1)
    # Its command knows of hosts what the scheduler says alone, and logs no refusal.
    refusals = [
        engines.refused(engine.vms.migrate, "a", host_id=name, closure=True) for name in ("h2", "h3", "h9")
    ]
    assert {(one.http_status, "no hosts to use" in one.detail) for one in refusals} == {(400, True)}
    assert 65 not in engines.codes(engine)
