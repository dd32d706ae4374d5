"""The engine's weights of even distribution against their definitions, in exact and in single precision."""

from __future__ import annotations

from ctypes import c_float, c_int32
from fractions import Fraction
from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.java import rounded, single, wrapped
from ovirt_placement.rules.load import score_by_cpu, score_by_memory
from ovirt_placement.rules.verdict import Request
from tests import builders as build

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
    most = max(c_float(host.free_mb).value for host in snapshot.hosts)
    expected = {}
    for host in snapshot.hosts:
        needed = 0
        for vm in (snapshot.vm_by_id[name] for name in asked):
            if vm.host != host.id:
                overhead = 64 + vm.memory_mb // 512 + 8 * vm.vcpus + 8 * vm.io_threads + vm.video_mb
                needed += vm.memory_mb + overhead
        left = c_float(c_float(c_float(host.free_mb).value - c_float(needed).value).value - 1).value
        above, below = c_float(left * 999).value, c_float(most - 1).value
        share = c_float(above / below).value if below else nan if above == 0 else inf if above > 0 else -inf
        steps = 0 if share != share else max(min(share, 2**31 - 1), -(2**31))
        whole = half_up(Fraction(steps))
        expected[host.id] = c_int32(1000 - whole).value
    assert score_by_memory(snapshot, Request(asked, HOSTS)) == expected


@given(snapshots(), st.sampled_from([("v1",), ("v1", "v2")]), st.sampled_from(["", "0", "0.5", "2", "three"]))
def test_cpu(snapshot: Snapshot, asked: tuple[str, ...], ratio: str) -> None:
    """What would be used of the host's CPUs, a thousandfold where it is crowded, spread from 1 to 1000."""
    threads = snapshot.clusters[0].count_threads_as_cores
    limit = Fraction(ratio) if ratio not in ("", "three") else Fraction(0)
    raw: dict[str, int] = {}
    for host in snapshot.hosts:
        if host.cpu_percent is None:
            continue
        cpus = host.threads if threads and host.threads is not None else host.cores
        load = host.cpu_percent * cpus + (10 if host.spm else 0)
        virtual = sum(vm.vcpus for vm in snapshot.vms if vm.host == host.id)
        coming = [entry.vm for entry in snapshot.pending if entry.host == host.id]
        for vm in (snapshot.vm_by_id[name] for name in (*coming, *asked)):
            if vm.id in asked and vm.host == host.id and vm.id not in coming:
                continue
            known = vm.host is not None and vm.usage_cpu_percent is not None
            load += vm.vcpus * (vm.usage_cpu_percent if known and vm.usage_cpu_percent is not None else 10)
            virtual += vm.vcpus
        crowded = limit != 0 and Fraction(virtual, cpus) >= limit
        raw[host.id] = half_up(Fraction(int(load), cpus) * (1000 if crowded else 1))
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    scores = score_by_cpu(
        snapshot, Request(asked, HOSTS, parameters={"VCpuToPhysicalCpuRatio": ratio} if ratio else {})
    )
    for host in snapshot.hosts:
        if host.cpu_percent is None:
            assert scores[host.id] == 1000
        elif least == most:
            assert scores[host.id] == 1
        else:
            exact = 1 + Fraction(raw[host.id] - least, most - least) * 999
            assert abs(scores[host.id] - exact) <= Fraction(1, 2) + Fraction(1, 10**9)


@given(st.integers(-(2**40), 2**40))
def test_numbers_end_where_an_int_ends(number: int) -> None:
    assert wrapped(number) == c_int32(number).value
    assert single(number) == c_float(number).value


@given(st.floats(-1e6, 1e6, width=32))
def test_halves_go_up(number: float) -> None:
    assert rounded(number) == half_up(Fraction(number))
