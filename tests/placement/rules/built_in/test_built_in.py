"""What the engine asks of a host before any affinity: each filter by itself."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.built_in.filters import (
    HOST_NOT_UP,
    MEMORY_HANDED_OUT,
    PINNED_ELSEWHERE,
    TOO_FEW_CORES,
    filter_by_cpus,
    filter_by_memory,
    filter_by_pins,
    filter_by_status,
)
from ovirt_placement.rules.verdict import Reason, Request
from tests.builders import cluster, host, pending, snapshot, vm

FILTERS = (filter_by_status, filter_by_memory, filter_by_cpus, filter_by_pins)


def reasons(state: Snapshot, vms: str, place: str = "h1") -> tuple[Reason, ...]:
    request = Request(tuple(vms.split()), (place,))
    verdicts = [verdict for ask in FILTERS for verdict in ask(state, request)]
    assert all(verdict.accepted == (not verdict.reasons) for verdict in verdicts)
    return tuple(reason for verdict in verdicts for reason in verdict.reasons)


def test_host_that_is_not_up_is_refused() -> None:
    assert reasons(snapshot(host("h1", status="error"), vm("a")), "a") == (Reason(HOST_NOT_UP, host="h1"),)


def test_memory_of_all_requested_vms_that_are_not_there_yet_must_fit() -> None:
    parts = (host("h1", free_mb=2000), vm("a", memory_mb=1000), vm("b", memory_mb=1001))
    assert reasons(snapshot(*parts), "a") == ()
    assert reasons(snapshot(*parts), "a b") == (Reason(MEMORY_HANDED_OUT, host="h1", number=2000),)
    assert reasons(snapshot(*parts, pending("b", "h1")), "a b") == ()


def test_only_a_vm_that_cannot_be_migrated_is_bound_to_its_hosts() -> None:
    parts = (host("h1"), host("h2"))
    bound = vm("a", migratable=False, pinned_hosts=("h2",))
    assert reasons(snapshot(*parts, bound), "a") == (Reason(PINNED_ELSEWHERE, vm="a"),)
    assert reasons(snapshot(*parts, bound), "a", "h2") == ()
    assert reasons(snapshot(*parts, vm("a", pinned_hosts=("h2",))), "a") == ()


def test_host_that_is_not_known_is_not_judged() -> None:
    assert reasons(snapshot(vm("a")), "a", "h9") == ()


def test_a_vm_needs_as_many_cores_as_it_has_cpus_and_several_need_no_more_than_the_largest() -> None:
    parts = (host("h1", cores=4, threads=8), vm("a", vcpus=4), vm("b", vcpus=5))
    refused = Reason(TOO_FEW_CORES, vm="b", host="h1", number=4)
    assert reasons(snapshot(*parts), "a") == ()
    assert reasons(snapshot(*parts), "a b") == (refused,)
    assert reasons(snapshot(*parts, vm("c", "h1", vcpus=4)), "a") == ()
    threads = cluster(count_threads_as_cores=True)
    assert reasons(snapshot(threads, *parts), "a b") == ()
    assert reasons(snapshot(threads, host("h1", cores=4), vm("a", vcpus=5)), "a")[0].number == 4
