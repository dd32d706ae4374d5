"""The engine's even distribution of CPU use, which follows what is promised, against its definition."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.inventory.expected.engines_weights import EnginesWeights
from ovirt_placement.inventory.expected.promised import Promised
from ovirt_placement.model import Host, Snapshot, Vm
from tests.builders import cluster, host, snapshot, vm

FACTOR = 3
NAMES = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c")
#: In the factors of a cluster's policy.
CPU = "even_cpu_weight"


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    hosts = [
        host(name, cpu_percent=draw(st.none() | st.integers(0, 100)), cores=draw(st.integers(1, 8)))
        for name in NAMES
    ]
    vms = [
        vm(
            name,
            draw(st.none() | st.sampled_from(NAMES)),
            vcpus=draw(st.integers(1, 6)),
            usage_cpu_percent=draw(st.none() | st.integers(0, 100)),
        )
        for name in VMS
    ]
    return snapshot(cluster(policy={CPU: FACTOR}), *hosts, *vms)


@given(
    st.lists(states(), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(VMS), st.sampled_from(NAMES), st.sampled_from(VMS)), max_size=8),
)
def test_each_decision_counts_what_was_promised_before(
    drawn: list[Snapshot], decisions: list[tuple[str, str, str]]
) -> None:
    promised, coming = Promised(), dict[str, tuple[Vm, str]]()
    weights = EnginesWeights(promised)
    for number, (going, target, asked) in enumerate(decisions):
        state = drawn[number % len(drawn)]
        if going in coming:
            known, there = coming.pop(going)
            promised.remove(there, known)
        else:
            coming[going] = state.vm_by_id[going], target
            promised.add(target, state.vm_by_id[going])
        found = weights.points(state, state.vm_by_id[asked], NAMES)[CPU]
        assert list(found) == _points(
            [_score(state.host_by_id[name], state, asked, coming) for name in NAMES]
        )


def _score(of: Host, state: Snapshot, asked: str, coming: dict[str, tuple[Vm, str]]) -> int:
    """Percent of the host's CPUs that would be used, halves rounded up; most where nobody knows."""
    if of.cpu_percent is None:
        return 10**9
    one = state.vm_by_id[asked]
    load = int(of.cpu_percent) * of.cores + sum(_load(vm) for vm, there in coming.values() if there == of.id)
    if one.host != of.id:
        load += _load(one)
    return floor(Fraction(load, of.cores) + Fraction(1, 2))


def _load(one: Vm) -> int:
    """A VM that starts, or whose use nobody knows, is taken to need 10 percent of each of its CPUs."""
    if one.host is None or one.usage_cpu_percent is None:
        return 10 * one.vcpus
    return int(one.usage_cpu_percent) * one.vcpus


def _points(scores: list[int]) -> list[int]:
    return [
        FACTOR * sum(other >= own for at, other in enumerate(scores) if at != place)
        for place, own in enumerate(scores)
    ]
