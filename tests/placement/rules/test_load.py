"""The engine's load balancing as we have it."""

from collections.abc import Iterator
from ctypes import c_float, c_int32
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.elements.ranks import rounded, single, wrapped
from ovirt_placement.rules.elements.verdict import BalanceMove
from ovirt_placement.rules.load import LoadLimits, balance_load, may_move, overloaded, proposals
from tests.builders import APART, CLUSTER, cluster, group, host, pending, snapshot, vm
from tests.examples import examples

LIMITS = LoadLimits(high_utilization=80)


def of(state: Snapshot) -> BalanceMove | None:
    hosts = tuple(one.id for one in state.hosts)
    return balance_load(state, CLUSTER, hosts, LIMITS, overloaded(state, hosts, LIMITS))


def loaded(name: str, percent: float | None, **fields: object) -> Host:
    return host(name, cpu_percent=percent, cores=10, **fields)


def using(name: str, on: str, percent: float, **fields: object) -> Vm:
    return vm(name, on, usage_cpu_percent=percent, vcpus=1, **fields)


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


def half_up(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


@given(st.integers(-(2**40), 2**40))
def test_numbers_end_where_an_int_ends(number: int) -> None:
    assert wrapped(number) == c_int32(number).value
    assert single(number) == c_float(number).value


@given(st.floats(-1e6, 1e6, width=32))
def test_halves_go_up(number: float) -> None:
    assert rounded(number) == half_up(Fraction(number))


PROPOSED_HOSTS = ("h0", "h1", "h2")


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    percent = st.none() | st.sampled_from([0, 30, 59, 60, 61, 74, 75, 76, 100]) | st.integers(0, 100)
    hosts = [
        host(
            name,
            cpu_percent=draw(percent),
            cores=draw(st.integers(1, 4)),
            threads=draw(st.none() | st.integers(4, 8)),
            free_mb=draw(st.integers(0, 6000)),
            spm=draw(st.booleans()),
        )
        for name in PROPOSED_HOSTS
    ]
    vms = [
        vm(
            name,
            draw(st.sampled_from(PROPOSED_HOSTS)),
            memory_mb=draw(st.sampled_from([500, 1000, 3000])),
            vcpus=draw(st.integers(1, 3)),
            usage_cpu_percent=draw(st.none() | st.integers(0, 100)),
            migratable=draw(st.sampled_from([True, True, False])),
        )
        for name in ("a", "b", "c", "d")
    ]
    return snapshot(cluster(count_threads_as_cores=draw(st.booleans())), *hosts, *vms)


PROPOSAL_LIMITS = st.builds(
    LoadLimits,
    high_utilization=st.integers(50, 99),
    max_free_memory_for_over_utilized=st.sampled_from([0, 2000, 4000]),
    min_free_memory_for_under_utilized=st.sampled_from([0, 1000, 3000]),
    vcpu_to_physical_cpu_ratio=st.sampled_from([0, 0.1, 1, 1.5, 2]),
)


@dataclass
class Definition:
    """CPU before memory; sources by their use, VMs by theirs, and no target that would be overloaded."""

    state: Snapshot
    limits: LoadLimits
    long_busy: set[str]

    def moves(self) -> Iterator[BalanceMove]:
        for sources, targets in (self.by_cpu(), self.by_memory()):
            for source in sources:
                for each in sorted(self.there(source), key=use):
                    fits = tuple(one.id for one in targets if one is not source and self.fits(one, each))
                    if fits and each.migratable:
                        yield BalanceMove(each.id, fits)

    def by_cpu(self) -> tuple[list[Host], list[Host]]:
        low = min(80 * self.limits.high_utilization // 100, self.limits.high_utilization - 10)
        sources = [one for one in self.state.hosts if self.busy(one) or self.crowded(one)]
        idle = [one for one in self.state.hosts if percent(one, one.cores) < low]
        sources.sort(key=lambda one: -percent(one, self.cpus(one)))
        idle.sort(key=lambda one: percent(one, self.cpus(one)))
        return sources, idle

    def by_memory(self) -> tuple[list[Host], list[Host]]:
        hosts, limits = self.state.hosts, self.limits
        short = [one for one in hosts if one.free_mb < limits.max_free_memory_for_over_utilized]
        roomy = [one for one in hosts if one.free_mb > limits.min_free_memory_for_under_utilized]
        return [one for one in short if len(self.there(one)) > 1], roomy

    def busy(self, one: Host) -> bool:
        known = one.cpu_percent is not None and one.id in self.long_busy and self.there(one)
        return bool(known) and percent(one, self.cpus(one)) >= self.limits.high_utilization

    def crowded(self, one: Host) -> bool:
        ratio = self.limits.vcpu_to_physical_cpu_ratio
        return ratio > 0 and sum(each.vcpus for each in self.there(one)) / self.cpus(one) >= ratio

    def fits(self, one: Host, each: Vm) -> bool:
        if one.cpu_percent is None:
            return False
        load = int(one.cpu_percent) * one.cores + 10 * one.spm + use(each)
        left_mb = one.free_mb - each.memory_mb
        cool = load <= self.limits.high_utilization * one.cores
        return cool and left_mb > self.limits.max_free_memory_for_over_utilized

    def there(self, one: Host) -> list[Vm]:
        return [each for each in self.state.vms if each.host == one.id]

    def cpus(self, one: Host) -> int:
        return one.threads if self.state.clusters[0].count_threads_as_cores and one.threads else one.cores


def percent(one: Host, cpus: int) -> int:
    """Of all CPUs, rounded up; the storage pool manager has a tenth of one more to bear."""
    return 100 if one.cpu_percent is None else -(-(int(one.cpu_percent) * cpus + 10 * one.spm) // cpus)


def use(each: Vm) -> int:
    return int(each.usage_cpu_percent or 0) * each.vcpus


@settings(max_examples=examples(300))
@given(clusters(), PROPOSAL_LIMITS, st.sets(st.sampled_from(PROPOSED_HOSTS)))
def test_what_is_proposed_is_what_the_engine_would_try(
    state: Snapshot, limits: LoadLimits, long_busy: set[str]
) -> None:
    found = proposals(state, CLUSTER, PROPOSED_HOSTS, limits, frozenset(long_busy))
    assert list(found) == list(Definition(state, limits, long_busy).moves())


@pytest.mark.parametrize("status", ["up", "migrating", "paused", "not_responding"])
@pytest.mark.parametrize("is_migratable", [True, False])
@pytest.mark.parametrize("is_on_its_way", [True, False])
def test_what_is_moved_runs_can_and_is_not_on_its_way(
    status: str, is_migratable: bool, is_on_its_way: bool
) -> None:
    coming = [pending("a", "h1")] if is_on_its_way else []
    state = snapshot(
        *map(host, PROPOSED_HOSTS), vm("a", "h0", status=status, migratable=is_migratable), *coming
    )
    expected = status == "up" and is_migratable and not is_on_its_way
    assert may_move(state, state.vm_by_id["a"]) == expected
