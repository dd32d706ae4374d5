"""The engine's load balancing, and its weights of an even load, as we have them."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_float, c_int32
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.elements.java import rounded, single, wrapped
from ovirt_placement.rules.elements.verdict import BalanceMove, Request
from ovirt_placement.rules.load import (
    LoadLimits,
    balance_load,
    may_move,
    overloaded,
    proposals,
    score_by_cpu,
    score_by_memory,
)
from tests import builders as build
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


HOSTS = ("h1", "h2", "h3", "h4")
PERCENT = st.none() | st.integers(0, 100)


def hosts(name: str) -> st.SearchStrategy[Host]:
    return st.builds(
        lambda **fields: build.host(name, **fields),
        free_mb=st.integers(0, 3_000_000),
        cpu_percent=PERCENT,
        cores=st.integers(1, 8),
        threads=st.none() | st.integers(8, 16),
        spm=st.booleans(),
    )


def vms(name: str) -> st.SearchStrategy[Vm]:
    return st.builds(
        lambda on, **fields: build.vm(name, on, **fields),
        st.none() | st.sampled_from(HOSTS),
        memory_mb=st.integers(1, 2_000_000),
        vcpus=st.integers(1, 8),
        usage_cpu_percent=PERCENT,
        io_threads=st.integers(0, 2),
        video_mb=st.sampled_from([0, 16, 96]),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    pending = draw(st.lists(st.sampled_from(["v3", "v4"]), unique=True))
    return build.snapshot(
        build.cluster(count_threads_as_cores=draw(st.booleans())),
        *(draw(hosts(host)) for host in HOSTS),
        *(draw(vms(f"v{number}")) for number in range(1, 5)),
        *(build.pending(vm, draw(st.sampled_from(HOSTS))) for vm in pending),
    )


def half_up(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


@given(snapshots(), st.sampled_from([("v1",), ("v1", "v2")]))
def test_memory(snapshot: Snapshot, asked: tuple[str, ...]) -> None:
    """1000, less the share that would be left of the most that a candidate has, step by step in a `float`."""
    most = max(c_float(known.free_mb).value for known in snapshot.hosts)
    expected = {}
    for known in snapshot.hosts:
        needed = 0
        for guest in (snapshot.vm_by_id[name] for name in asked):
            if guest.host != known.id:
                overhead = (
                    64 + guest.memory_mb // 512 + 8 * guest.vcpus + 8 * guest.io_threads + guest.video_mb
                )
                needed += guest.memory_mb + overhead
        left = c_float(c_float(c_float(known.free_mb).value - c_float(needed).value).value - 1).value
        above, below = c_float(left * 999).value, c_float(most - 1).value
        share = c_float(above / below).value if below else nan if above == 0 else inf if above > 0 else -inf
        steps = 0 if share != share else max(min(share, 2**31 - 1), -(2**31))
        whole = half_up(Fraction(steps))
        expected[known.id] = c_int32(1000 - whole).value
    assert score_by_memory(snapshot, Request(asked, HOSTS)) == expected


@given(snapshots(), st.sampled_from([("v1",), ("v1", "v2")]), st.sampled_from(["", "0", "0.5", "2", "three"]))
def test_cpu(snapshot: Snapshot, asked: tuple[str, ...], ratio: str) -> None:
    """What would be used of the host's CPUs, a thousandfold where it is crowded, spread from 1 to 1000."""
    threads = snapshot.clusters[0].count_threads_as_cores
    limit = Fraction(ratio) if ratio not in ("", "three") else Fraction(0)
    raw: dict[str, int] = {}
    for known in snapshot.hosts:
        if known.cpu_percent is None:
            continue
        cpus = known.threads if threads and known.threads is not None else known.cores
        load = known.cpu_percent * cpus + (10 if known.spm else 0)
        virtual = sum(guest.vcpus for guest in snapshot.vms if guest.host == known.id)
        coming = [entry.vm for entry in snapshot.pending if entry.host == known.id]
        for guest in (snapshot.vm_by_id[name] for name in (*coming, *asked)):
            if guest.id in asked and guest.host == known.id and guest.id not in coming:
                continue
            measured = None if guest.host is None else guest.usage_cpu_percent
            load += guest.vcpus * (10 if measured is None else measured)
            virtual += guest.vcpus
        crowded = limit != 0 and Fraction(virtual, cpus) >= limit
        raw[known.id] = half_up(Fraction(int(load), cpus) * (1000 if crowded else 1))
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    scores = score_by_cpu(
        snapshot, Request(asked, HOSTS, parameters={"VCpuToPhysicalCpuRatio": ratio} if ratio else {})
    )
    for known in snapshot.hosts:
        if known.cpu_percent is None:
            assert scores[known.id] == 1000
        elif least == most:
            assert scores[known.id] == 1
        else:
            exact = 1 + Fraction(raw[known.id] - least, most - least) * 999
            assert abs(scores[known.id] - exact) <= Fraction(1, 2) + Fraction(1, 10**9)


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
