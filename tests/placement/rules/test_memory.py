"""What the engine asks of a host's memory, against the simulated engine, on random hosts and VMs."""

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.status.clusters import cluster_status, judge
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.doubts import Believed, believed, uncounted
from ovirt_placement.rules.elements.resources import (
    overhead_mb,
    promised_mb,
    required_mb,
    with_arrived,
    with_left,
)
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.engine_filters import MEMORY_AND_SWAP_IN_USE, MEMORY_HANDED_OUT, filter_by_memory
from ovirt_placement.rules.failover.check import check
from ovirt_simulator.scheduler import filters as simulated
from tests import builders as build
from tests.builders import CLUSTER, cluster, host, needed_mb, pending, snapshot, vm

HOSTS = ("h1", "h2")
SIZES = st.integers(1, 4096) | st.sampled_from([511, 512, 513, 1024, 65536])
HUGE = st.sampled_from([{}, {}, {"hugepages": "2048"}, {"hugepages": "1048576"}, {"hugepages": "none"}])


@st.composite
def vms(draw: st.DrawFn, name: str) -> Vm:
    at = draw(st.none() | st.sampled_from(["h1", "h2"]))
    return vm(
        name,
        at,
        status=draw(st.sampled_from(["up", "paused", "migrating"])) if at else "down",
        memory_mb=draw(SIZES),
        vcpus=draw(st.integers(1, 4)),
        io_threads=draw(st.integers(0, 2)),
        video_mb=draw(st.sampled_from([0, 16, 96])),
        custom_properties=draw(HUGE),
        usage_mem_percent=draw(st.none() | st.integers(0, 100)),
    )


def page_kib(one: Vm) -> int:
    reported = one.custom_properties.get("hugepages", "")
    return int(reported) if reported.isdigit() else 0


def pages_of(one: Vm) -> int:
    return math.ceil(one.memory_mb * 1024 / page_kib(one)) if page_kib(one) else 0


def engine_takes(state: Snapshot, asked: str, place: Host) -> bool:
    """Whether the simulated engine takes VMs on a host of which ours is shown physical memory in percents."""
    shown = place.memory_free_mb is not None and place.swap_free_mb is not None
    free_mb = (place.memory_free_mb or 0) + place.memory_mb // 100 if shown else None
    as_shown = replace(place, memory_free_mb=free_mb)
    return not simulated.memory(state, [state.vm_by_id[name] for name in asked], [as_shown])


@pytest.mark.parametrize(("pages", "accepted"), [(2047, True), (2048, False), (2049, True)])
def test_pages_for_a_vm_on_its_way_are_taken_from_as_many_as_a_page_is_large(
    pages: int, accepted: bool
) -> None:
    """The engine looks up what is pending by the number of free pages in place of their size."""
    huge = {"hugepages": "2048"}
    asked, coming = (
        replace(vm(name, memory_mb=mb), custom_properties=huge) for name, mb in (("a", 3072), ("c", 2048))
    )
    place = host("h1", free_mb=10**6, memory_free_mb=100, swap_free_mb=0, free_huge_pages={2048: pages})
    state = snapshot(place, asked, coming, pending("c", "h1"))
    (verdict,) = filter_by_memory(state, Request(("a",), ("h1",)))
    assert verdict.accepted is engine_takes(state, "a", place) is accepted


@st.composite
def on_their_way(draw: st.DrawFn) -> Snapshot:
    """VMs on their way to both hosts; all have huge pages of one size, more often than not."""
    huge = draw(st.sampled_from([{}, {"hugepages": "2048"}, {"hugepages": "2048"}, {"hugepages": "1048576"}]))
    drawn = [replace(draw(vms(name)), custom_properties=huge or draw(HUGE)) for name in "abcd"]
    hosts = (host(name, memory_mb=100 * draw(st.integers(0, 900))) for name in HOSTS)
    coming = [pending("c", "h1"), pending("d", "h2")]
    return snapshot(*hosts, *drawn, *draw(st.sampled_from([coming, coming, coming[:1]])))


def free_pages(state: Snapshot) -> list[dict[int, int]]:
    """About as many as are asked for, with what is on its way or without; last as many as a page is large."""
    sizes = {page_kib(one): pages_of(one) for one in state.vms if page_kib(one)}
    needed = [pages_of(one) for one in state.vms]
    counts = {*needed, needed[0] + needed[1], needed[0] + needed[2], needed[1] + needed[3], sum(needed)}
    return [
        {},
        *(
            {size: max(0, count - 1), 512: 9}
            for size in sorted(sizes, reverse=True)
            for count in (*counts, size, size + 1)
        ),
    ]


#: What is found enough of in turn, and what else the host has.
BORDERS = (
    ("free_mb", {"memory_free_mb": 10**9}), ("free_mb", {"memory_free_mb": None}),
    ("free_mb", {"swap_free_mb": None, "memory_free_mb": 1}), ("memory_free_mb", {"swap_free_mb": 10**9}),
    ("memory_free_mb", {}),
)  # fmt: skip


@given(on_their_way(), st.sampled_from(["a", "b", "ab"]), st.integers(0, 50), st.data())
def test_hosts_with_exactly_enough_take_vms_and_those_with_a_mib_less_do_not(
    state: Snapshot, asked: str, swap_mb: int, data: st.DataObject
) -> None:
    """Enough is what the simulated engine finds so."""
    *counts, as_a_page = free_pages(state)
    for bare in state.hosts:
        plenty = replace(bare, free_mb=10**9, memory_free_mb=10**9, swap_free_mb=swap_mb)
        for pages in (data.draw(st.sampled_from(counts or [as_a_page])), as_a_page):
            for field, others in BORDERS:
                ask_around(state, asked, field, replace(plenty, free_huge_pages=pages, **others))


def ask_around(state: Snapshot, asked: str, field: str, place: Host) -> None:
    enough_mb = bisect_left(
        range(2**18), True, key=lambda mb: engine_takes(state, asked, replace(place, **{field: mb}))
    )
    for mb in {max(0, enough_mb - 1), enough_mb}:
        here = replace(place, **{field: mb})
        (verdict,) = filter_by_memory(with_host(state, here), Request(tuple(asked), (here.id,)))
        assert verdict.accepted is engine_takes(state, asked, here), (field, here)


def with_host(state: Snapshot, place: Host) -> Snapshot:
    return replace(state, hosts=tuple(place if one.id == place.id else one for one in state.hosts))


@given(
    vms("a"),
    vms("b"),
    st.integers(-2, 2),
    st.dictionaries(st.sampled_from([2048, 1048576]), st.integers(0, 3)),
)
def test_a_host_has_no_more_physical_memory_than_it_has_and_no_less_than_none(
    one: Vm, other: Vm, beyond: int, more_pages: dict[int, int]
) -> None:
    used = [
        one.memory_mb if one.usage_mem_percent is None else round(one.memory_mb * one.usage_mem_percent / 100)
        for one in (one, other)
    ]
    for vms_there in ((one,), (one, other)):
        mb = sum(used[: len(vms_there)])
        full = host("h", memory_mb=100_000, memory_free_mb=100_000 - mb + beyond)
        assert with_left(full, *vms_there).memory_free_mb == 100_000 + min(0, beyond)
        assert with_left(full, *vms_there).free_mb == full.free_mb + sum(map(needed_mb, vms_there))
        needed = {
            size: sum(pages_of(vm) for vm in vms_there if page_kib(vm) == size) for size in (2048, 1048576)
        }
        ready = {size: max(0, count + more_pages.get(size, 0) - 1) for size, count in needed.items()}
        low = host("h", memory_mb=100_000, memory_free_mb=max(0, mb + beyond), free_huge_pages=ready)
        arrived = with_arrived(low, *vms_there)
        assert arrived.memory_free_mb == max(0, max(0, mb + beyond) - mb)
        assert arrived.free_huge_pages == {size: max(0, ready[size] - needed[size]) for size in ready}
        unknown = replace(low, memory_free_mb=None)
        assert with_left(unknown, *vms_there).memory_free_mb is None
        assert with_arrived(unknown, *vms_there).memory_free_mb is None


@given(vms("a"), vms("b"))
def test_what_comes_and_goes_leaves_a_host_as_it_was(one: Vm, other: Vm) -> None:
    place = host("h", memory_mb=10**6, free_mb=5000, memory_free_mb=500_000)
    arrived = with_arrived(place, one, other)
    assert arrived.free_mb == 5000 - needed_mb(one) - needed_mb(other)
    assert with_left(with_left(arrived, one), other) == place
    assert required_mb(one) == one.memory_mb + overhead_mb(one) == needed_mb(one)


def test_what_is_promised_may_be_another_size_than_the_vm_has_now() -> None:
    grown = vm("a", memory_mb=2048)
    entry = build.pending("a", "h1")
    assert promised_mb(grown, None) == promised_mb(grown, entry) == needed_mb(grown)
    assert promised_mb(grown, type(entry)(vm="a", host="h1", memory_mb=1024)) == needed_mb(grown) - 1024


def test_which_memory_a_host_lacks_is_reported() -> None:
    fields = {"memory_mb": 0, "swap_free_mb": 10}
    asked = Request(("a",), ("h1",))

    def reason(place: Host) -> object:
        (verdict,) = filter_by_memory(snapshot(place, vm("a", needs_mb=1024)), asked)
        return [(one.kind, one.number) for one in verdict.reasons]

    assert reason(host("h1", free_mb=1023, memory_free_mb=2000, **fields)) == [(MEMORY_HANDED_OUT, 1023)]
    assert reason(host("h1", free_mb=2000, memory_free_mb=900, **fields)) == [(MEMORY_AND_SWAP_IN_USE, 910)]
    assert reason(host("h1", free_mb=1024, memory_free_mb=1000, **fields)) == []


@pytest.mark.parametrize(
    ("memory", "most", "expected"),
    [(4096, 16384, 100 + 256 + 16), (4096, 16385, 100 + 512 + 16), (1000, None, 100 + 16 + 16)],
)
def test_page_tables_of_power_hold_what_memory_may_grow_to(
    memory: int, most: int | None, expected: int
) -> None:
    large = vm("a", memory_mb=memory, max_memory_mb=most, architecture="ppc64le")
    assert overhead_mb(large) == expected


@given(st.data())
def test_no_more_is_believed_than_the_vms_there_leave(data: st.DataObject) -> None:
    """Whatever the engine reports, as after its start, when it has counted no VM, or some."""
    percent = data.draw(st.sampled_from([100, 150]))
    there = [
        vm(
            f"v{number}",
            data.draw(st.sampled_from(["h1", "h2", None])),
            memory_mb=data.draw(SIZES),
            vcpus=data.draw(st.integers(1, 4)),
            status=data.draw(st.sampled_from(["up", "paused", "migrating", "wait_for_launch"])),
        )
        for number in range(data.draw(st.integers(0, 4)))
    ]
    there = [replace(one, status=one.status if one.host else "down") for one in there]
    there = [
        replace(one, migrating_to=data.draw(st.sampled_from(HOSTS))) if one.status == "migrating" else one
        for one in there
    ]
    counted = {name: [one for one in there if name in (one.host, one.migrating_to)] for name in HOSTS}
    taken = {name: sum(map(needed_mb, vms)) for name, vms in counted.items()}
    #: Without what a VM takes besides its memory, which is estimated where its devices were not read.
    certainly = {name: sum(one.memory_mb for one in vms) for name, vms in counted.items()}
    hosts = [
        host(
            name,
            memory_mb=4096,
            free_mb=data.draw(
                st.integers(0, 8192) | st.just(max(0, 4096 * percent // 100 - taken[name] - 386))
            ),
        )
        for name in ("h1", "h2")
    ]
    reported = snapshot(cluster(CLUSTER, memory_overcommit_percent=percent), *hosts, *there)
    found = believed(reported)
    for before, after in zip(reported.hosts, found.hosts, strict=True):
        most = max(0, 4096 * percent // 100 - taken[before.id])
        certain = max(0, 4096 * percent // 100 - certainly[before.id])
        doubted = bool(counted[before.id]) and before.free_mb > certain
        assert (after.free_mb, after.memory_uncounted) == (most if doubted else before.free_mb, doubted)
    assert bool(uncounted(found, CLUSTER)) == any(one.memory_uncounted for one in found.hosts)
    if found.hosts == reported.hosts:
        assert found is reported


#: Of an engine 4.5.8 with hosts of 65,536 MiB: what it reported 1.6 s and 4.1 s after its start, and the
#: memory of the VMs that ran there all the time.
RESTARTED = [(60758, 65150, 4392), (58514, 65150, 6636), (65150, 65150, 0)]


def test_an_engine_that_has_just_started() -> None:
    def state(moment: int) -> Snapshot:
        parts = [
            part
            for number, one in enumerate(RESTARTED)
            for part in (
                host(f"h{number}", memory_mb=65536, free_mb=one[moment]),
                *([vm(f"v{number}", f"h{number}", needs_mb=one[2], ha=True)] if one[2] else []),
            )
        ]
        return believed(snapshot(cluster(CLUSTER, ha_reservation=True), *parts))

    right, empty = state(0), state(1)
    assert [one.free_mb for one in right.hosts] == [60758, 58514, 65150]
    assert [one.memory_uncounted for one in right.hosts] == [False] * 3
    assert check(right, CLUSTER).safe is True
    assert [one.free_mb for one in empty.hosts] == [65536 - 4392, 65536 - 6636, 65150]
    assert uncounted(empty, CLUSTER) == ("the engine has not counted the memory of all VMs on h0, h1 yet")
    found = check(empty, CLUSTER)
    assert (found.safe, found.doubt) == (None, uncounted(empty, CLUSTER))
    (status,) = (cluster_status(empty, one.id) for one in empty.clusters)
    assert (status.ha_safe, status.doubt) == (None, uncounted(empty, CLUSTER))
    health, reasons = judge(None, (), (status,), None, None)
    assert health == "degraded"
    assert reasons == (f"cluster {CLUSTER}: no verdict, and nothing is planned: {status.doubt}",)


#: What an engine 4.5.8 reported of a host of 65,536 MiB with a VM of 8,192, to which one of 2,048 migrated:
#: seconds since it had arrived, and MiB. In between it was deducted neither as pending nor as running.
ARRIVED = ((0.0, 54698), (6.5, 56846), (20.0, 56846), (20.6, 54698))


def test_a_vm_that_has_just_arrived_is_deducted_before_the_engine_counts_it() -> None:
    known: dict[str, Believed] = {}
    first, second = vm("q", "h1", needs_mb=8304), vm("b", "h1", needs_mb=2148)

    def read(now: float, free_mb: int, *vms: Vm) -> tuple[int, bool]:
        reported = host("h1", memory_mb=65536, free_mb=free_mb)
        (found,) = believed(snapshot(reported, *vms), known, now).hosts
        return found.free_mb, found.memory_uncounted

    assert read(-60.0, 56846, first) == (56846, False)
    assert read(-6.0, 54698, first) == (54698, False)
    for seconds, free_mb in ARRIVED:
        assert read(seconds, free_mb, first, second) == (54698, False)
    # One that comes meanwhile is pending: it hides no arrival.
    third = replace(vm("c", "h2", needs_mb=4096), status="migrating", migrating_to="h1")
    assert read(6.5, 56846 - 4096, first, second, third) == (54698 - 4096, False)
    # The engine starts again; and one that is never counted is doubted.
    assert read(60.0, 65150, first, second) == (65536 - 8304 - 2148, True)
    assert read(75.0, 56846, first, second) == (65536 - 8304 - 2148, True)


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd")), st.booleans()), max_size=8), st.integers(0, 200))
def test_a_host_whose_vms_come_and_go_is_believed_what_it_has(
    readings: list[tuple[set[str], bool]], reserved_mb: int
) -> None:
    """The engine counts who has arrived at once, or at a later reading; those that left are counted no more.

    What it reserves is less than any VM has: an arrival within that looks like one that is counted.
    """
    known: dict[str, Believed] = {}
    sizes = {"a": 700, "b": 700, "c": 700, "d": 700}
    counted: set[str] = set()
    for now, (there, counts) in enumerate(readings):
        counted = there if counts or not now else counted & there
        vms = {name: vm(name, "h1", memory_mb=sizes[name]) for name in sorted(there)}
        needed = {name: needed_mb(one) for name, one in vms.items()}
        free_mb = 8192 - reserved_mb - sum(needed[name] for name in counted)
        state = snapshot(host("h1", memory_mb=8192, free_mb=free_mb), *vms.values())
        (found,) = believed(state, known, now).hosts
        assert not found.memory_uncounted
        assert found.free_mb == 8192 - reserved_mb - sum(needed.values())
