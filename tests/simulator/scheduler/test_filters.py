"""What comparing hosts that filters leave does not show: their reasons, and CPUs that are VMs' own."""

from __future__ import annotations

import pytest

from ovirt_simulator.scheduler import filters
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm


@pytest.mark.parametrize(
    ("policy", "counted", "fits"),
    [("none", False, 4), ("dedicated", False, 1), ("dedicated", True, 2), ("isolate_threads", True, 0)],
)
def test_cpus_that_are_a_vms_own_are_nobody_elses(policy: str, counted: bool, fits: int) -> None:
    """CPUPolicyUnit: of 4 cores with 2 threads each, 6 vCPUs of its own leave 1 core, or 2 threads."""
    own = vm("own", "h1", vcpus=6, threads_per_core=2, cpu_pinning=policy, cpu_sockets=1)
    state = snapshot(cluster(count_threads_as_cores=counted), host("h1", cores=4, threads=8), own)
    hosts = list(state.hosts)
    taken = [count for count in range(1, 9) if not filters.cpu(state, [vm("new", vcpus=count)], hosts)]
    assert max(taken, default=0) == fits


@pytest.mark.parametrize("peer_of", ["h1", "h2", "h3"])
@pytest.mark.parametrize("stranger_of", ["h1", "h2", "h3"])
def test_a_host_of_which_both_are_true_is_refused_for_who_must_not_be_there(
    peer_of: str, stranger_of: str
) -> None:
    state = snapshot(
        *map(host, ("h1", "h2", "h3")),
        *(vm("v"), vm("peer", peer_of), vm("stranger", stranger_of)),
        group("together", TOGETHER, "v peer"),
        group("apart", APART, "v stranger"),
    )
    refusals = filters.vm_affinity(state, [state.vm_by_id["v"]], state.hosts)
    expected = {one: "positive" for one in ("h1", "h2", "h3") if one != peer_of} | {stranger_of: "negative"}
    assert {
        one: next(word for word in ("positive", "negative") if word in said) for one, said in refusals.items()
    } == expected
