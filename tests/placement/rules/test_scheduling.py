"""The order that units' weights make, the engine's order of candidates, and its load balancing.

That of hard groups is compared with the simulator's: tests/tools/test_engine_cases.py.
"""

import json
from collections.abc import Iterator
from ctypes import c_float, c_int32
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import in_order, order_hosts, rounded, single, spread_hash, wrapped
from ovirt_placement.rules.elements.verdict import BalanceMove
from ovirt_placement.rules.engine_affinity import gains, tiers
from ovirt_placement.rules.load import LoadLimits, balance_load, may_move, overloaded, proposals
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    cluster,
    group,
    host,
    pending,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.paths import DATA

#: What a JVM answered, of tables with few bins and with many.
TABLES = DATA / "java" / "selector_tables.json"

HOSTS = ("h1", "h2", "h3", "h4")
WEIGHTS = st.dictionaries(
    st.sampled_from(["u1", "u2", None]),
    st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3)),
    max_size=3,
)


def test_missing_weight_is_the_best_and_of_equals_what_is_named_first() -> None:
    assert [one.host for one in order_hosts(("h2", "h3", "h1"), {"u": {"h2": 5}}, {})] == ["h3", "h1", "h2"]


@given(WEIGHTS, st.dictionaries(st.sampled_from(["u1", "u2"]), st.integers(0, 20)))
def test_points_are_those_of_the_definition(
    weights: dict[str | None, dict[str, int]], factors: dict[str, int]
) -> None:
    for scored in order_hosts(HOSTS, weights, factors):
        points = 0
        for unit, by_host in weights.items():
            own = by_host.get(scored.host, 0)
            not_preferred = sum(by_host.get(host, 0) >= own for host in HOSTS) - 1
            if by_host:
                points += not_preferred * (1 if unit is None else factors.get(unit, 1))
        assert scored.points == points


@pytest.mark.parametrize("asked", json.loads(TABLES.read_text()))
def test_hosts_in_one_bin_come_as_a_jvm_found_them(asked: dict[str, Any]) -> None:
    """The order in which a JVM went through the selector's table of points, all of them alike."""
    order = order_hosts(asked["hosts"], asked["units"], dict.fromkeys(asked["units"], 0))
    assert [one.host for one in order] == asked["found"]


#: Ids of all kinds, and some whose hashes meet.
NAMES = st.lists(
    (st.uuids() | st.integers(0, 80).map(lambda number: UUID(int=number))).map(str), unique=True, max_size=40
)


def halves(name: str) -> tuple[int, int]:
    """As `UUID.compareTo` takes them: two signed numbers of 64 bits."""
    octets = bytes.fromhex(name.replace("-", ""))
    return int.from_bytes(octets[:8], signed=True), int.from_bytes(octets[8:], signed=True)


def spread(name: str) -> int:
    """All four words of the id, one over the other; the upper half of the sum over the lower."""
    word = 0
    digits = name.replace("-", "")
    for start in range(0, 32, 8):
        word ^= int(digits[start : start + 8], 16)
    return word ^ word >> 16


@given(NAMES)
def test_ids_are_compared_by_signed_halves(names: list[str]) -> None:
    assert sorted(names, key=in_order) == sorted(names, key=halves)
    assert [spread_hash(name) for name in names] == [spread(name) for name in names]


def test_what_is_no_id_comes_last_as_people_count() -> None:
    names = ["vm10", "vm2", "ffffffff-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000001"]
    assert sorted(names, key=in_order) == [*names[2:], "vm2", "vm10"]
    assert spread_hash("vm2") is None


def test_gains_and_losses_that_cancel_leave_it_to_the_next_priority() -> None:
    state = snapshot(
        *map(host, HOSTS), vm("a", "h1"), vm("b", "h1", migratable=False), vm("c", "h2", migratable=False),
        vm("d", "h1", migratable=False), group("from b", SOFT_APART, "a b", priority=5.0),
        group("from c", SOFT_APART, "a c", priority=5.0), group("from d", SOFT_APART, "a d", priority=1.0),
    )  # fmt: skip
    assert gains(state, "a", "h2")
    assert not gains(state, "a", "h1")


def test_members_of_a_group_with_higher_priority_come_first_though_it_is_smaller() -> None:
    state = snapshot(
        *map(host, HOSTS), *(vm(name, "h1") for name in "abcde"), group("large", SOFT_APART, "a b c"),
        group("small", SOFT_APART, "d e", priority=2.0),
    )  # fmt: skip
    found = tiers([*constraints(state, CLUSTER)], SnapshotPlacement(state), "abcde")
    assert list(found) == [(False, ("d", "e")), (False, ("a", "b", "c"))]


@pytest.mark.parametrize("there", range(3))
@pytest.mark.parametrize("here", range(3))
def test_a_loss_weighs_against_a_gain_of_the_same_priority(there: int, here: int) -> None:
    """Of groups with one other member each: it stands where the VM would go, or where it is."""
    friends = [("h2", f"there{at}") for at in range(there)] + [("h1", f"here{at}") for at in range(here)]
    state = snapshot(
        *map(host, HOSTS), vm("a", "h1"), *(vm(name, place) for place, name in friends),
        *(group(f"with {name}", SOFT_TOGETHER, f"a {name}") for _, name in friends),
    )  # fmt: skip
    assert gains(state, "a", "h2") == (there > here)


# -- The engine's load balancing as we have it.
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
        loaded("h1", 95), loaded("h2", 0, failover=True), loaded("h3", 5), loaded("h4", 10),
        loaded("h5", None), using("engine", "h1", 1, hosted_engine=True),
        using("pinned", "h1", 1, migratable=False), using("moving", "h1", 1, status="migrating"),
        using("a", "h1", 10), using("foe", "h3", 1), group("g", APART, "a foe"),
    )  # fmt: skip
    assert of(state) == BalanceMove("a", ("h4",))


def half_up(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


@given(st.integers(-(2**40), 2**40))
def test_numbers_end_where_an_int_ends(number: int) -> None:
    assert (wrapped(number), single(number)) == (c_int32(number).value, c_float(number).value)


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
