"""Highly available VMs of a crashed host restart by their priorities (the engine's HaAutoStartVmsRunner)."""

from __future__ import annotations

from ovirt_simulator.core.engine import Engine
from tests.builders import Part, host, vm
from tests.simulator.core import engines

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
    assert engines.where(engine, "c") == ("powering_up", "h2")
    engine.advance(3)
    assert begun(engine) == ["c", "b", "d"]
    assert engines.where(engine, "a") == ("down", None)
    engine.advance(10)
    assert begun(engine) == ["c", "b", "d", "a"]


def test_nobody_waits_forever_for_one_that_no_host_takes() -> None:
    large = vm("large", "h1", ha=True, ha_priority=100, memory_mb=20_000)
    engine = crashed(host("h1"), host("h2", free_mb=4_000), large, vm("small", "h1", ha=True))
    engine.advance(595)
    assert begun(engine) == []
    engine.advance(15)
    assert begun(engine) == ["small"]
    assert engines.where(engine, "large") == ("down", None)


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
    assert engines.where(engine, "a") == ("down", None)


def test_priorities_are_between_0_and_100() -> None:
    engine = engines.engine(host("h1"), vm("a"))
    refusal = engines.refused(engine.vms.edit, "a", ha_priority=101)
    assert (refusal.http_status, refusal.detail) == (
        400,
        "[Cannot edit VM. Illegal priority value: it must be between 0 and 100.]",
    )
    engine.vms.edit("a", ha_priority=0)
    assert engines.vm(engine, "a").ha_priority == 0
