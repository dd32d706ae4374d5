"""VMs start, stop, migrate and are suspended over simulated time."""

from typing import Any

import pytest

from ovirt_simulator.core import messages
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.scheduler.placing import Scheduler
from tests.builders import TOGETHER, Part, group, host, pending, vm
from tests.simulator.core import engines


def test_a_start_goes_through_its_statuses_and_events() -> None:
    engine = engines.engine(host("h1"), vm("v"))
    job = engine.vms.start("v", caller=Caller(user="joe", correlation_id="abc"))
    assert engines.shown(engine, "v") == ["wait_for_launch h1"]
    engine.advance(1)
    assert engines.shown(engine, "v") == ["powering_up h1"]
    engine.advance(4)
    assert engines.shown(engine, "v") == ["up h1"]
    events = engine.queries.events()
    assert [event.code for event in events] == [32, 153]
    assert {event.correlation_id for event in events} == {"abc"}
    assert events[1].description == "VM v was started by joe (Host: h1)."
    assert events[1].host is not None
    assert events[1].host.name == "h1"
    done = engines.job(engine, job.id)
    assert (done.status, done.correlation_id) == ("finished", "abc")


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
    ("status", "command", "at_once", "then", "reported"),
    [
        ("up", "stop", "powering_down h1", "down", [33, 61]),
        ("up", "shutdown", "powering_down h1", "down", [73, 61]),
        ("up", "suspend", "saving_state h1", "suspended", [501, 503]),
        ("suspended", "start", "restoring_state h1", "up h1", [153, 32]),
        ("suspended", "stop", "down", "down", [111]),
        ("suspended", "shutdown", "down", "down", [111]),
    ],
)
def test_a_command_takes_its_time(
    status: str, command: str, at_once: str, then: str, reported: list[int]
) -> None:
    engine = engines.engine(host("h1"), vm("v", "h1" if status == "up" else None, status=status))
    getattr(engine.vms, command)("v")
    assert engines.shown(engine, "v") == [at_once]
    engine.advance(10)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == ([then], reported)


def test_stopping_a_vm_that_powers_up_ends_its_start() -> None:
    engine = engines.engine(host("h1"), vm("v"))
    engine.vms.start("v")
    engine.advance(2)
    engine.vms.stop("v")
    engine.advance(20)
    assert engines.shown(engine, "v") == ["down"]
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
    assert engines.shown(engine, "ha") == ["down"]
    engine.advance(20)
    assert engines.shown(engine, "ha", "other") == ["up h1", "down"]
    assert engines.codes(engine) == [119, 9602, 119, 506, 506]


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


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("saving_state", "VM is in saving/restoring state"),
        ("restoring_state", "VM is in saving/restoring state"),
        ("image_locked", "VM is not running"),
        ("unknown", "VM is not running"),
    ],
)
def test_ending_is_refused_in_other_statuses(status: str, words: str) -> None:
    engine = engines.engine(host("h"), vm("v", "h", status=status))
    for command in (engine.vms.stop, engine.vms.shutdown):
        refusal = engines.refused(command, "v")
        assert refusal.http_status == 409
        assert words in refusal.detail
    assert not [job for job in engine.queries.jobs() if job.description.startswith(("Pow", "Shut"))]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("down", "VM is not up"),
        ("wait_for_launch", "WaitForLaunch"),
        ("migrating", "VM v is being migrated"),
        ("powering_up", "VM is not up"),
    ],
)
def test_only_what_is_up_is_suspended(status: str, words: str) -> None:
    engine = engines.engine(host("h"), vm("v", None if status == "down" else "h", status=status))
    refusal = engines.refused(engine.vms.suspend, "v")
    assert refusal.http_status == 409
    assert words in refusal.detail


# -- Highly available VMs of a crashed host restart by their priorities (the engine's HaAutoStartVmsRunner).
#: Until the crash is seen and fenced.
FENCED = 35


def crashed(*parts: Part, after: float = FENCED) -> Engine:
    engine = engines.engine(*parts)
    engine.hosts.fail("h1")
    engine.advance(after)
    return engine


def begun(engine: Engine) -> list[str]:
    """The VMs that the engine began to restart, in this order; it reports each again when it is up."""
    found = [event.vm.id for event in reversed(engine.queries.events()) if event.code == 506 and event.vm]
    return list(dict.fromkeys(found))


def test_a_lower_priority_waits_until_all_of_a_higher_one_are_up() -> None:
    priorities = {"a": 1, "b": 50, "c": 100, "d": 50}
    parts = [vm(name, "h1", ha=True, ha_priority=priority) for name, priority in priorities.items()]
    engine = crashed(host("h1"), host("h2"), *parts)
    engine.advance(1)
    assert begun(engine) == ["c"]
    engine.advance(3)
    assert begun(engine) == ["c"]
    assert engines.shown(engine, "c") == ["powering_up h2"]
    engine.advance(3)
    assert begun(engine) == ["c", "b", "d"]
    assert engines.shown(engine, "a") == ["down"]
    engine.advance(10)
    assert begun(engine) == ["c", "b", "d", "a"]


def test_nobody_waits_forever_for_one_that_no_host_takes() -> None:
    large = vm("large", "h1", ha=True, ha_priority=100, memory_mb=20_000)
    engine = crashed(host("h1"), host("h2", free_mb=4_000), large, vm("small", "h1", ha=True))
    engine.advance(595)
    assert begun(engine) == []
    engine.advance(15)
    assert begun(engine) == ["small"]
    assert engines.shown(engine, "large") == ["down"]


def test_the_priority_is_that_of_the_moment() -> None:
    engine = crashed(
        host("h1"), vm("a", "h1", ha=True, ha_priority=100), vm("b", "h1", ha=True, ha_priority=1), after=60
    )
    engine.vms.edit("b", ha_priority=100)
    engine.vms.edit("a", ha_priority=1)
    engine.hosts.recover("h1")
    engine.advance(60)
    assert begun(engine) == ["b", "a"]


def test_who_starts_one_that_waits_takes_it_from_the_list() -> None:
    engine = crashed(host("h1"), vm("a", "h1", ha=True, ha_priority=100), vm("b", "h1", ha=True))
    engine.hosts.recover("h1")
    engine.vms.edit("a", ha=False)
    engine.advance(60)
    assert begun(engine) == ["b"]
    assert engines.shown(engine, "a") == ["down"]


def test_priorities_are_between_0_and_100() -> None:
    engine = engines.engine(host("h1"), vm("a"))
    refusal = engines.refused(engine.vms.edit, "a", ha_priority=101)
    assert (refusal.http_status, refusal.detail) == (
        400,
        "[Cannot edit VM. Illegal priority value: it must be between 0 and 100.]",
    )
    engine.vms.edit("a", ha_priority=0)
    assert engines.vm(engine, "a").ha_priority == 0


# -- Migrations: what one sees of them, what refuses them, and what can go wrong.
FAIL = MigrationFault(fail=True)


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


def test_a_vm_that_migrates_is_locked() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.vms.migrate("v")
    refusal = engines.refused(engine.vms.migrate, "v", host_id="h3")
    assert (refusal.http_status, refusal.detail) == (409, "[Cannot migrate VM. VM v is being migrated.]")
    engine.advance(30)
    engine.vms.migrate("v")


def test_a_vm_that_migrates_can_be_stopped_as_the_engines_stop_takes_no_lock() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    ordered = engine.vms.migrate("v")
    engine.vms.stop("v")
    engine.advance(30)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["down"], [62, 33, 61])
    assert engines.job(engine, ordered.id).status == "failed"
    engine.vms.start("v")


def test_a_failure_is_tried_again_on_another_host() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.faults.expect(FAIL)
    engine.vms.migrate("v")
    engine.advance(30)
    assert engines.where(engine, "v") in {("up", "h2"), ("up", "h3")}
    assert engines.codes(engine) == [62, 128, 62, 63]


@pytest.mark.parametrize("others", range(1, 7))
def test_three_more_hosts_are_tried_after_the_first(others: int) -> None:
    engine = engines.engine(host("h0"), *(host(f"h{at}") for at in range(1, others + 1)), vm("v", "h0"))
    free = engines.host(engine, "h1").free_mb
    engine.faults.expect(FAIL, count=99)
    job = engine.vms.migrate("v")
    engine.advance(300)
    assert (engines.shown(engine, "v"), engines.host(engine, "h1").free_mb) == (["up h0"], free)
    assert engines.job(engine, job.id).status == "failed"
    tries = min(others, 1 + 3)
    # After a failure it is said that another is tried, whether there is one or not.
    failures = tries if others <= 3 else tries - 1
    assert [engines.codes(engine).count(code) for code in (62, 128, 65)] == [tries, failures, 1]


def test_a_failure_towards_a_named_host_is_final() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.faults.expect(FAIL, identity="v")
    engine.vms.migrate("v", host_id="h2")
    engine.advance(60)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["up h1"], [62, 120])


def test_slow_hanging_and_refused_migrations() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("s", "h1"), vm("h", "h1"), vm("r", "h1"))
    for identity, fault in (("s", {"slow": 10}), ("h", {"hang": True}), ("r", {"refuse": True})):
        engine.faults.expect(MigrationFault(**fault), identity=identity)
    engine.vms.migrate("s")
    engine.vms.migrate("h")
    assert engines.refused(engine.vms.migrate, "r").http_status == 400
    engine.advance(20)
    assert engines.shown(engine, "s") == ["migrating h1"]
    engine.advance(3600)
    assert engines.shown(engine, "s", "h", "r") == ["up h2", "migrating h1", "up h1"]
    engine.vms.migrate("r")


def test_cancelling_leaves_the_vm_where_it_is() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    engine.vms.migrate("v")
    engine.advance(1)
    engine.vms.cancel_migration("v")
    engine.advance(60)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["up h1"], [62, 161])
    refusal = engines.refused(engine.vms.cancel_migration, "v")
    assert (refusal.http_status, refusal.detail) == (409, "[Cannot cancel migration for non migrating VM.]")


def test_a_migration_that_is_handed_over_cannot_be_cancelled() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    engine.vms.migrate("v")
    engine.advance(3.2)
    assert engines.shown(engine, "v") == ["migrating h2"]
    assert engines.refused(engine.vms.cancel_migration, "v").http_status == 409
    engine.advance(5)
    assert engines.shown(engine, "v") == ["up h2"]


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
