"""HA reservation: the weight and the balance."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules import ha
from ovirt_placement.rules.elements.verdict import BalanceMove, BalanceRequest, Reason, Request
from ovirt_placement.rules.failover.balance import balance_vms
from ovirt_placement.rules.ha import HA_RESOURCES_HERE, HA_VMS_HERE, Measure, balance_ha_vms, rank_hosts
from tests.builders import APART, CLUSTER, TOGETHER, Part, cluster, group, host, needed_mb, rule, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

RESERVING = cluster(ha_reservation=True)
TWO_HOSTS = (host("h1"), host("h2"))
THREE_HOSTS = (*TWO_HOSTS, host("h3"))


def of(
    state: Snapshot, over: int = 100, hosts: str = "h1 h2 h3", measure: Measure = Measure.RESOURCES
) -> BalanceMove | None:
    return balance_ha_vms(state, CLUSTER, tuple(hosts.split()), over, measure)


def test_what_vms_use_counts_and_not_how_many_they_are() -> None:
    large = (vm(f"large{number}", "h1", ha=True, memory_mb=20_000) for number in range(2))
    small = (vm(f"small{number}", "h2", ha=True, memory_mb=500) for number in range(5))
    state = snapshot(RESERVING, *TWO_HOSTS, *large, *small)
    assert of(state, hosts="h1 h2") == BalanceMove("large0", ("h2",))
    assert of(state, hosts="h1 h2", measure=Measure.VMS) == BalanceMove("small0", ("h1",))


def test_a_host_twice_as_large_bears_twice_as_much() -> None:
    hosts = host("h1", memory_mb=131_072, cores=32), host("h2")
    vms = [vm(f"v{number}", "h1", ha=True) for number in range(4)]
    even = snapshot(RESERVING, *hosts, *vms, *(vm(f"w{number}", "h2", ha=True) for number in range(2)))
    assert of(even, hosts="h1 h2") is None
    assert of(even, hosts="h1 h2", measure=Measure.VMS) == BalanceMove("v0", ("h2",))
    uneven = snapshot(RESERVING, *hosts, *vms, vm("v4", "h1", ha=True), vm("w", "h2", ha=True))
    assert of(uneven, hosts="h1 h2") == BalanceMove("v0", ("h2",))


def crowd(prefix: str, at: str, count: int, **fields: object) -> list[Vm]:
    return [vm(f"{prefix}{number}", at, ha=True, **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("parts", "move"),
    [
        pytest.param(
            (*crowd("v", "h1", 4), *crowd("w", "h2", 1)),
            BalanceMove("v0", ("h3", "h2")),
            id="the fullest host gives to hosts below the share, the emptiest first",
        ),
        pytest.param([vm(f"v{one}", f"h{one}", ha=True) for one in (1, 2, 3)], None, id="an even cluster"),
        pytest.param(
            [vm(f"v{one}", f"h{one}", ha=True) for one in (1, 2)], None, id="nothing only swaps two hosts"
        ),
        pytest.param(
            (*crowd("p", "h1", 4, migratable=False), *crowd("q", "h2", 3)),
            BalanceMove("q0", ("h3",)),
            id="a host with fixed VMs alone is passed over",
        ),
        pytest.param(
            (
                vm("engine", "h1", ha=True, hosted_engine=True),
                vm("moving", "h1", ha=True, status="migrating"),
                vm("v", "h1", ha=True),
            ),
            BalanceMove("v", ("h2", "h3")),
            id="the hosted engine and migrating VMs stay",
        ),
        pytest.param(
            (*crowd("v", "h1", 2), vm("foe", "h2"), group("g", APART, "v0 foe")),
            BalanceMove("v0", ("h3",)),
            id="a target that a hard rule refuses is left out",
        ),
        pytest.param(
            (
                *TWO_HOSTS,
                vm("all", "h1", ha=True, memory_mb=40_000),
                vm("some", "h1", ha=True, memory_mb=9000),
                vm("other", "h2", ha=True, memory_mb=10_000),
            ),
            BalanceMove("some", ("h2",)),
            id="the largest VM goes whose move makes the cluster more even",
        ),
        pytest.param(
            (
                host("h1"),
                host("h2", free_mb=3000),
                rule("r", "capacity", "b", hosts="h2", most=0),
                *(
                    vm(name, "h1", ha=True, needs_mb=mb)
                    for name, mb in (("a", 20_000), ("b", 2000), ("c", 1000))
                ),
            ),
            BalanceMove("c", ("h2",)),
            id="a VM that the engine would let go nowhere leaves its turn to the next",
        ),
        pytest.param(
            (host("h1"), host("h2", cpu_percent=95, measured=True), host("h3"), *crowd("v", "h1", 3)),
            BalanceMove("v0", ("h3",)),
            id="a host that is too busy is no target",
        ),
        pytest.param(
            (*TWO_HOSTS, host("h3", failover=True), *crowd("v", "h1", 2)),
            BalanceMove("v0", ("h2",)),
            id="a failover host is no target",
        ),
    ],
)
def test_each_move(parts: Sequence[Part], move: BalanceMove | None) -> None:
    hosts = [one.id for one in parts if isinstance(one, Host)]
    state = snapshot(RESERVING, *(() if hosts else THREE_HOSTS), *parts)
    assert of(state, hosts=" ".join(hosts or HOSTS[:3])) == move


BUSY = host("h1", cpu_percent=75, cores=10)
#: Its last VM is the busier one.
BUSY_WITH_TWO = (BUSY, vm("a", "h1", usage_cpu_percent=1), vm("b", "h1", usage_cpu_percent=5))


@pytest.mark.parametrize(
    ("parameters", "parts", "move"),
    [
        pytest.param(
            {"ha_measure": "vms", "ha_balance_over_utilization": "100"},
            (
                *(host("h2"), BUSY, host("h3")),
                *(*crowd("p", "h2", 2), vm("v", "h1", ha=True), vm("w", "h3", ha=True)),
            ),
            None,
            id="HA would take it back",
        ),
        pytest.param(
            {"ha_balance_vcpu_to_physical_cpu_ratio": "1"},
            (host("h1", cores=2), host("h2", cores=2), vm("a", "h1", vcpus=2)),
            None,
            id="the target has no more CPUs",
        ),
        pytest.param(
            {"ha_balance_max_free_memory_for_over_utilized": "2000"},
            (
                *(host("h1", free_mb=1000), host("h2", free_mb=3050)),
                *(vm(name, "h1", memory_mb=1024) for name in "ab"),
            ),
            None,
            id="with its overhead the target is short of memory",
        ),
        pytest.param(
            {},
            (BUSY, host("h2", cpu_percent=0, cores=10), vm("a", "h1", vcpus=10, usage_cpu_percent=75)),
            None,
            id="the target is as busy then",
        ),
        pytest.param(
            {},
            (*BUSY_WITH_TWO, host("h2"), rule("r", "capacity", "a", hosts="h2", most=0)),
            BalanceMove("b", ("h2",)),
            id="a placement rule refuses it",
        ),
        pytest.param(
            {},
            (
                *(*BUSY_WITH_TWO, host("h2"), vm("c", "h1"), vm("d", "h1"), vm("e", "h2")),
                group("g", TOGETHER, "a c d e"),
            ),
            BalanceMove("b", ("h2",)),
            id="a group would be split further",
        ),
        pytest.param(
            {},
            (
                *(*BUSY_WITH_TWO, host("h2"), vm("c", "h2")),
                rule("r", "separate", "a", other_vms="c", enforcing=False),
            ),
            BalanceMove("b", ("h2",)),
            id="a soft placement rule would be violated",
        ),
    ],
)
def test_load_gives_no_vm_where_it_would_not_stay(
    parameters: dict[str, str], parts: Sequence[Part], move: BalanceMove | None
) -> None:
    hosts = tuple(one.id for one in parts if isinstance(one, Host))
    assert balance_vms(snapshot(RESERVING, *parts), BalanceRequest(hosts, parameters)) == move


@pytest.mark.parametrize("part", [{"ha": True}, {"ha": False}])
def test_of_vms_that_no_host_accepts_not_too_many_are_asked_about(
    part: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ha, "admitted", lambda state, one, *_: asked.append(one.id) or ())
    vms = (vm(f"v{number}", "h1", **part) for number in range(60))
    state = snapshot(RESERVING, BUSY, host("h2"), *vms)
    assert balance_vms(state, BalanceRequest(("h1", "h2"))) is None
    assert len(set(asked)) == 60  # with two hosts that is soon done
    monkeypatch.setattr(ha, "_MOST_ASKED", 20)
    asked.clear()
    assert balance_vms(state, BalanceRequest(("h1", "h2"))) is None
    assert 20 <= len(asked) <= 2 * 20


@st.composite
def sized(draw: st.DrawFn) -> Snapshot:
    """Hosts and VMs of a few sizes, so that some are equally full."""
    drawn = draw(snapshots())
    hosts = (replace(one, memory_mb=mb, cores=n) for one in drawn.hosts for mb, n in [draw(CAPACITIES)])
    vms = (replace(one, memory_mb=mb, vcpus=n) for one in drawn.vms for mb, n in [draw(SIZES)])
    return replace(drawn, hosts=tuple(hosts), vms=tuple(vms))


@given(sized(), st.sampled_from([1, 50, 100, 150, 200, 300]), st.sampled_from(Measure))
def test_every_move_leaves_the_cluster_more_even(state: Snapshot, over: int, measure: Measure) -> None:
    move = balance_ha_vms(state, CLUSTER, HOSTS, over, measure)
    if move is None:
        return
    moved = next(one for one in state.vms if one.id == move.vm)
    assert state.clusters[0].ha_reservation
    assert moved.ha
    assert moved.migratable
    assert not moved.hosted_engine
    assert moved.host not in move.hosts
    hosts = {one.id: one for one in state.hosts}

    def takes(one: Vm, place: str) -> Fraction:
        if measure is Measure.VMS:
            return Fraction(1)
        return Fraction(needed_mb(one), 2 * hosts[place].memory_mb) + Fraction(
            one.vcpus, 2 * hosts[place].cores
        )

    used = dict.fromkeys(HOSTS, Fraction(0))
    for one in state.vms:
        targets = {entry.host for entry in state.pending if entry.vm == one.id} or {one.host}
        for place in targets & set(HOSTS):
            used[place] += takes(one, place) if one.ha and one.cluster == CLUSTER else 0
    for target in move.hosts:
        before = used[moved.host]
        assert max(before - takes(moved, moved.host), used[target] + takes(moved, target)) < before


@pytest.mark.parametrize(("over", "is_moved"), [(151, True), (200, True), (201, False), (250, False)])
def test_a_host_at_the_threshold_holds_too_many(over: int, is_moved: bool) -> None:
    """Four of the even share of two are 200 percent of it; thresholds are whole VMs."""
    vms = [vm(f"v{number}", "h1", ha=True) for number in range(4)]
    state = snapshot(RESERVING, *TWO_HOSTS, *vms)
    found = of(state, over, "h1 h2", Measure.VMS)
    assert (found is not None) == is_moved


def ranks(state: Snapshot, vm_id: str, **parameters: str) -> dict[str, int]:
    weights = rank_hosts(state, Request((vm_id,), ("h1", "h2", "h3"), parameters=parameters))
    return {weight.host: weight.rank for weight in weights}


def test_what_is_used_is_held_against_what_the_host_has() -> None:
    state = snapshot(
        RESERVING, host("h1", memory_mb=10_000, cores=8), host("h2", memory_mb=40_000, cores=32),
        host("h3", memory_mb=20_000, cores=8), vm("new", ha=True),
        vm("a", "h1", ha=True, needs_mb=2000, vcpus=2), vm("b", "h2", ha=True, needs_mb=2000, vcpus=2),
        vm("c", "h3", ha=True, needs_mb=4000, vcpus=2),
    )  # fmt: skip
    assert ranks(state, "new") == {"h2": 0, "h1": 1, "h3": 1}
    found = {one.host: one.reasons for one in rank_hosts(state, Request(("new",), ("h1", "h2")))}
    assert found["h1"] == (Reason(HA_RESOURCES_HERE, number=22.5),)
    assert found["h2"] == (Reason(HA_RESOURCES_HERE, number=5.6),)


def test_cpus_count_as_the_cluster_counts_them() -> None:
    hosts = host("h1", cores=8, threads=16), host("h2", cores=12, threads=12), host("h3")
    vms = vm("new", ha=True), vm("a", "h1", ha=True, vcpus=4), vm("b", "h2", ha=True, vcpus=4)
    assert ranks(snapshot(RESERVING, *hosts, *vms), "new") == {"h3": 0, "h2": 1, "h1": 2}
    threads = cluster(ha_reservation=True, count_threads_as_cores=True)
    assert ranks(snapshot(threads, *hosts, *vms), "new") == {"h3": 0, "h1": 1, "h2": 2}


def test_scaling_down_makes_hosts_tie() -> None:
    vms = vm("new", ha=True), vm("a", "h1", ha=True), vm("b", "h1", ha=True), vm("c", "h2", ha=True)
    state = snapshot(RESERVING, *THREE_HOSTS, *vms)
    for measure in ("vms", "resources"):
        assert ranks(state, "new", ha_measure=measure) == {"h3": 0, "h2": 1, "h1": 2}
        scaled = ranks(state, "new", ha_measure=measure, ha_weight_scale_down="100")
        assert scaled == {"h3": 0, "h2": 1, "h1": 1}
    (counted,) = rank_hosts(state, Request(("new",), ("h1",), parameters={"ha_measure": "vms"}))
    assert counted.reasons == (Reason(HA_VMS_HERE, number=2),)


def test_a_host_with_little_in_use_does_not_tie_with_one_that_has_none() -> None:
    full = vm("full", "h1", ha=True, memory_mb=60_000, vcpus=16)
    small = vm("small", "h2", ha=True, memory_mb=16)
    hosts = host("h1"), host("h2", memory_mb=1 << 20, cores=256), host("h3")
    assert ranks(snapshot(RESERVING, *hosts, vm("new", ha=True), full, small), "new")["h2"] == 1


def test_vm_without_high_availability_ties_but_still_spares_the_failover_host() -> None:
    hosts = host("h1", failover=True), host("h2"), host("h3")
    assert ranks(snapshot(RESERVING, *hosts, vm("a"), vm("b", "h2", ha=True)), "a") == {
        "h2": 0,
        "h3": 0,
        "h1": 1,
    }


SIZES = st.tuples(st.sampled_from([512, 512, 2048, 60_000]), st.sampled_from([1, 1, 2, 8]))
CAPACITIES = st.tuples(st.sampled_from([32_768, 65_536, 65_536]), st.sampled_from([8, 16, 16]))


@given(sized(), st.sampled_from(VMS), st.sampled_from(["1", "3", "100"]))
def test_order_is_that_of_what_the_others_use(state: Snapshot, vm_id: str, scale_down: str) -> None:
    asked = next(one for one in state.vms if one.id == vm_id)
    going = {one.id: {entry.host for entry in state.pending if entry.vm == one.id} for one in state.vms}
    there = {
        place.id: [
            one
            for one in state.vms
            if one.ha
            and one.id != vm_id
            and one.cluster == CLUSTER
            and place.id in (going[one.id] or {one.host})
        ]
        for place in state.hosts
    }
    by_resources = {
        place.id: Fraction(sum(map(needed_mb, there[place.id])), 2 * place.memory_mb)
        + Fraction(sum(one.vcpus for one in there[place.id]), 2 * place.cores)
        for place in state.hosts
    }
    by_vms = {place.id: Fraction(len(there[place.id])) for place in state.hosts}
    decides = asked.ha and state.clusters[0].ha_reservation
    for measure, figures in (("resources", by_resources), ("vms", by_vms)):
        request = Request(
            (vm_id,), HOSTS, parameters={"ha_measure": measure, "ha_weight_scale_down": scale_down}
        )
        found = {weight.host: weight.rank for weight in rank_hosts(state, request)}
        assert {*found.values()} == {*range(len({*found.values()}))}
        fullest = max(figures[place] for place in HOSTS) or 1
        for one, other in product(HOSTS, repeat=2):
            if not decides or figures[one] == figures[other]:
                assert found[one] == found[other]
            elif figures[one] < figures[other]:
                assert found[one] <= found[other]
                # A step of the scale apart, hosts do not tie; nor do one that is empty and one that is not.
                apart = 100 * (figures[other] - figures[one]) / fullest >= int(scale_down) + 1
                if apart or figures[one] == 0:
                    assert found[one] < found[other]
