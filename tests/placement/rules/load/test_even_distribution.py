"""The balance of load: thresholds, order, and what is never done."""

from __future__ import annotations

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.load import LoadLimits, balance_load, overloaded
from ovirt_placement.rules.verdict import BalanceMove
from tests.builders import APART, CLUSTER, Part, group, host, snapshot, vm

LIMITS = LoadLimits(high_utilization=80)


def of(state: Snapshot, limits: LoadLimits = LIMITS, *, busy: bool = True) -> BalanceMove | None:
    hosts = tuple(one.id for one in state.hosts)
    return balance_load(
        state, CLUSTER, hosts, limits, overloaded(state, hosts, limits) if busy else frozenset()
    )


def loaded(name: str, percent: float | None, **fields: object) -> Host:
    return host(name, cpu_percent=percent, cores=10, **fields)


def using(name: str, on: str, percent: float, **fields: object) -> Vm:
    return vm(name, on, usage_cpu_percent=percent, vcpus=1, **fields)


def test_least_busy_vm_leaves_the_busiest_host_for_the_idlest() -> None:
    state = snapshot(
        loaded("h1", 85),
        loaded("h2", 95),
        loaded("h3", 20),
        loaded("h4", 10),
        using("a", "h1", 5),
        using("b", "h2", 50),
        using("c", "h2", 40),
    )
    assert of(state) == BalanceMove("c", ("h4", "h3"))


def test_threshold_belongs_to_the_overloaded_and_low_utilization_does_not_to_targets() -> None:
    """At 80 %, targets are below 64 %: the lesser of 80 % of it and ten points less."""
    assert of(snapshot(loaded("h1", 80), loaded("h2", 63), using("a", "h1", 10))) == BalanceMove("a", ("h2",))
    assert of(snapshot(loaded("h1", 80), loaded("h2", 64), using("a", "h1", 10))) is None
    assert of(snapshot(loaded("h1", 79), loaded("h2", 0), using("a", "h1", 10))) is None


def test_host_that_has_not_been_overloaded_for_long_is_left_alone() -> None:
    state = snapshot(loaded("h1", 95), loaded("h2", 0), using("a", "h1", 10))
    assert of(state, busy=False) is None


def test_vm_that_would_overload_every_target_stays_and_the_next_goes() -> None:
    """On 10 cores, 300 % of a core are 30 points."""
    state = snapshot(
        loaded("h1", 95),
        loaded("h2", 60),
        vm("big", "h1", usage_cpu_percent=30, vcpus=10),
        using("a", "h1", 400),
    )
    assert of(state) is None
    assert of(snapshot(*state.hosts, *state.vms, using("b", "h1", 350))) is None
    assert of(snapshot(*state.hosts, *state.vms, using("b", "h1", 200))) == BalanceMove("b", ("h2",))


def test_memory_comes_second_and_needs_more_than_one_vm() -> None:
    limits = LoadLimits(max_free_memory_for_over_utilized=4096, min_free_memory_for_under_utilized=8192)
    short = (loaded("h1", 10, free_mb=1000), loaded("h2", 10, free_mb=9000), loaded("h3", 10, free_mb=8192))
    two = (using("a", "h1", 20), using("b", "h1", 10))
    assert of(snapshot(*short, *two), limits) == BalanceMove("b", ("h2",))
    assert of(snapshot(*short, two[0]), limits) is None
    large = vm("b", "h1", memory_mb=4904, usage_cpu_percent=10)
    assert of(snapshot(*short, using("a", "h1", 20, memory_mb=5000), large), limits) is None


def test_virtual_cpus_per_core_overload_a_host_too() -> None:
    parts: tuple[Part, ...] = (
        loaded("h1", 10),
        loaded("h2", 10),
        vm("a", "h1", vcpus=15),
        vm("b", "h1", vcpus=5),
    )
    assert of(snapshot(*parts), LoadLimits(vcpu_to_physical_cpu_ratio=2)) == BalanceMove("b", ("h2",))
    assert of(snapshot(*parts), LoadLimits(vcpu_to_physical_cpu_ratio=3)) is None


def test_fixed_and_moving_vms_stay_and_rules_and_failover_hosts_are_respected() -> None:
    state = snapshot(
        loaded("h1", 95),
        loaded("h2", 0, failover=True),
        loaded("h3", 5),
        loaded("h4", 10),
        loaded("h5", None),
        using("engine", "h1", 1, hosted_engine=True),
        using("pinned", "h1", 1, migratable=False),
        using("moving", "h1", 1, status="migrating"),
        using("a", "h1", 10),
        using("foe", "h3", 1),
        group("g", APART, "a foe"),
    )
    assert of(state) == BalanceMove("a", ("h4",))


def test_caller_may_forbid_a_target() -> None:
    state = snapshot(loaded("h1", 95), loaded("h2", 0), loaded("h3", 10), using("a", "h1", 10))
    hosts = tuple(one.id for one in state.hosts)
    move = balance_load(state, CLUSTER, hosts, LIMITS, frozenset(hosts), lambda one, place: place != "h2")
    assert move == BalanceMove("a", ("h3",))
