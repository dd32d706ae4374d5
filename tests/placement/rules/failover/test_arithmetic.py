"""The engine's own HA check, made exact both ways: against an oracle that tries every assignment."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.failover.check import by_engine
from ovirt_placement.rules.failover.measures import SEARCH_BUDGET, Arithmetic
from ovirt_placement.rules.failover.outcomes import Loss, Survival
from tests import builders as build
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.failover.restarting import smallest

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")


def big(vm_id: str, on: str, memory: int = 4096, **fields: object) -> build.Part:
    return vm(vm_id, on, ha=True, memory_mb=memory, guaranteed_mb=memory, **fields)


def test_loss_names_the_vms_that_have_no_home() -> None:
    state = snapshot(host("h1"), host("h2", free_mb=5000), big("a", "h1"), big("b", "h1"))
    (loss,) = by_engine(state, CLUSTER, 1).losses
    assert (loss.hosts, len(loss.unplaced)) == (("h1",), 1)


TWO, THREE = (host("h1"), host("h2")), (host("h1"), host("h2"), host("h3"))
A, B = big("a", "h1"), big("b", "h1")
SMALL = [big(f"v{number}", "h1", 1, vcpus=1, usage_cpu_percent=0.5) for number in range(30)]
HALF = vm("a", "h1", ha=True, memory_mb=1001, guaranteed_mb=1, usage_mem_percent=50)
LEAVING = vm("peer", "h1", status="migrating", migrating_to="h2")
#: Only 6 + 3 on one host and 4 + 4 on the other fit: taking the largest first goes astray.
ODD = [big(name, "h1", size) for name, size in zip(VMS, (6000, 4000, 4000, 3000, 3000), strict=True)]


@pytest.mark.parametrize(
    ("parts", "safe"),
    [
        pytest.param(
            (host("h1"), host("h2", free_mb=11000), host("h3", free_mb=9000), *ODD), True,
            id="no false alarm where first fit gives up",
        ),
        pytest.param((host("h1"), host("h2", free_mb=500), HALF), False, id="half a MiB is rounded up"),
        pytest.param((host("h1"), host("h2", free_mb=501), HALF), True, id="as in the engine"),
        pytest.param((host("h1"), host("h2", cores=1, cpu_percent=90), *SMALL), False, id="loads add up"),
        pytest.param((host("h1"), host("h2", cores=1, cpu_percent=85), *SMALL), True, id="and fit"),
        pytest.param((*TWO, big("a", "h1", migratable=False, pinned_hosts=("h1",))), False, id="pinned"),
        pytest.param((*TWO, A, group("g", vms="a", hosts_rule=APART, hosts="h2")), False, id="off hosts"),
        pytest.param((*THREE, A, B, group("g", APART, "a b")), True, id="apart on two hosts that are left"),
        pytest.param((*TWO, A, B, group("g", APART, "a b")), False, id="apart on one that is left"),
        pytest.param((host("h1"), vm("a", "h1")), True, id="one host protects nothing"),
        pytest.param((host("h1"), A), False, id="one host protects none"),
        pytest.param((host("h1", status="maintenance"), A), True, id="what is not up cannot fail"),
        pytest.param(
            (*TWO, host("h3", free_mb=0), A, LEAVING, group("g", APART, "a peer")), True,
            id="a peer that was leaving keeps off no target",
        ),
        pytest.param(
            (host("h1"), host("h2", free_mb=0), host("h3"), A, LEAVING, group("g", TOGETHER, "a peer")), True,
            id="a peer that was leaving draws to no target",
        ),
    ],
)  # fmt: skip
def test_each_state_is_safe_or_not(parts: tuple[build.Part, ...], safe: bool) -> None:
    assert by_engine(snapshot(*parts), CLUSTER, 1).safe is safe


@st.composite
def reserving(draw: st.DrawFn) -> Snapshot:
    """A cluster of hosts with little room and coarse sizes, so that both answers are common."""
    sizes = st.sampled_from([1000, 2000, 3000, 4000])
    return snapshot(
        *(
            host(
                name,
                free_mb=draw(st.sampled_from([0, 2000, 3000, 5000, 7000])),
                cores=draw(st.sampled_from([2, 4])),
                cpu_percent=draw(st.sampled_from([None, 0, 50, 90])),
                status=draw(st.sampled_from(["up", "up", "up", "maintenance"])),
            )
            for name in HOSTS
        ),
        *(
            build.vm(
                name,
                draw(st.sampled_from((*HOSTS, "h1", "h2", None))),
                ha=draw(st.sampled_from([True, True, False])),
                memory_mb=draw(sizes),
                guaranteed_mb=draw(sizes),
                usage_mem_percent=draw(st.sampled_from([None, 50, 100])),
                usage_cpu_percent=draw(st.sampled_from([None, 0, 50, 100])),
                vcpus=draw(st.sampled_from([1, 2])),
            )
            for name in VMS
        ),
        *(
            group(
                f"g{number}",
                draw(st.sampled_from([TOGETHER, APART, APART])),
                " ".join(sorted(draw(st.sets(st.sampled_from(VMS), min_size=2, max_size=3)))),
                hosts_rule=draw(st.sampled_from([build.DISABLED, build.DISABLED, TOGETHER, APART])),
                hosts=" ".join(sorted(draw(st.sets(st.sampled_from(HOSTS), min_size=1, max_size=3)))),
            )
            for number in range(draw(st.integers(0, 2)))
        ),
    )


def assignments(state: Snapshot, failed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    lost = [one.id for one in state.vms if one.host in failed and one.ha]
    homes = [one.id for one in state.hosts if one.status == "up" and one.id not in failed]
    for chosen in product(homes, repeat=len(lost)):
        yield dict(zip(lost, chosen, strict=True))


def is_legal(state: Snapshot, failed: tuple[str, ...], homes: dict[str, str]) -> bool:
    vms = {one.id: one for one in state.vms}
    for place in state.hosts:
        arriving = [vms[name] for name, home in homes.items() if home == place.id]
        memory = sum(
            max(int(one.memory_mb * (one.usage_mem_percent or 0) / 100 + 0.5), one.guaranteed_mb)
            for one in arriving
        )
        cpu = sum(Fraction(one.usage_cpu_percent or 0) * one.vcpus for one in arriving)
        idle = 0 if place.cpu_percent is None else (100 - Fraction(place.cpu_percent)) * place.cores
        if arriving and (memory > place.free_mb or cpu > idle):
            return False
    staying = {one.id: one.host for one in state.vms if one.host and one.host not in failed}
    return all(obeys(state, name, home, homes, staying) for name, home in homes.items())


def obeys(state: Snapshot, name: str, home: str, homes: dict[str, str], staying: dict[str, str]) -> bool:
    """Whether a restarted VM's home keeps its hard groups, given all that run elsewhere."""
    tied = {name}
    for _ in state.affinity_groups:
        for one in state.affinity_groups:
            if one.vms_rule.positive and tied & set(one.vms):
                tied |= set(one.vms)
    gathered = {staying[peer] for peer in tied if peer in staying}
    with_peers = {homes[peer] for peer in tied if peer in homes}
    if home not in gathered if gathered else with_peers != {home}:
        return False
    for one in state.affinity_groups:
        if name in one.vms:
            if one.hosts_rule.enabled and (home in one.hosts) != one.hosts_rule.positive:
                return False
            after = {**staying, **homes}
            near = any(after.get(peer) == home for peer in one.vms if peer != name)
            if not one.vms_rule.positive and near:
                return False
    return True


@settings(max_examples=examples(150))
@given(reserving(), st.integers(1, 2))
def test_check_is_exact_both_ways(state: Snapshot, failures: int) -> None:
    up = [one.id for one in state.hosts if one.status == "up"]
    found = by_engine(state, CLUSTER, failures)
    lost = []
    for failed in (one for size in range(1, failures + 1) for one in combinations(up, size)):
        outcome = Arithmetic(state, CLUSTER).judge(failed, Budget(SEARCH_BUDGET))
        if not any(is_legal(state, failed, homes) for homes in assignments(state, failed)):
            lost.append(failed)
        assert isinstance(outcome, Loss if failed in lost else Survival)
        if isinstance(outcome, Survival):
            assert outcome.homes.keys() == {one.id for one in state.vms if one.host in failed and one.ha}
            assert is_legal(state, failed, outcome.homes)
    assert [loss.hosts for loss in found.losses] == smallest(lost)
    assert found.safe is (not lost)
    assert found.unjudged == 0
