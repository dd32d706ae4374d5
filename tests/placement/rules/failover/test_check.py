"""The HA check, exact both ways: safe is an order of starts that all filters let through.

The engine's softer verdict stands besides it.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Host, PlacementKey, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.rules import rule_list
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Request, Verdict
from ovirt_placement.rules.failover.check import HaCheck, by_engine, check
from ovirt_placement.rules.failover.outcomes import Outside, Unknown
from tests import builders as build
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    TOGETHER,
    cluster,
    group,
    host,
    key,
    node_key,
    pending,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.rules.failover.restarting import lost_later, lost_sets, passes, smallest, survives

KEYED = cluster(scheduling_policy=SchedulingPolicy(filters=("PlacementKeyFilter",)))
THREE = (host("h1"), host("h2"), host("h3"))
#: A VM on its way in another cluster, with a label that brings it into groups: the engine's filter sees it.
FAR = (
    cluster(), cluster("cluster2"), host("far", cluster="cluster2"), vm("x", "far", cluster="cluster2"),
    pending("x", "far"), build.label("foreign", "x"),
)  # fmt: skip


def of(*parts: build.Part, failures: int | None = None, keys: tuple[PlacementKey, ...] = ()) -> HaCheck:
    return check(replace(snapshot(*parts), placement_keys=keys), CLUSTER, failures)


def ha(name: str, on: str | None, memory: int = 4096, **fields: Any) -> build.Part:
    return vm(name, on, ha=True, needs_mb=memory, **fields)


A, B = ha("a", "h1"), ha("b", "h1")
LARGE = ha("a", "h1", vcpus=8, usage_cpu_percent=0)
PAGED = {"custom_properties": {"hugepages": "2048"}}
#: Enough can be handed out there, and less is physically free than two VMs take.
CRAMPED = {"memory_mb": 0, "memory_free_mb": 5000, "swap_free_mb": 0}
TWO, FULL = (host("h1"), host("h2")), (host("h1"), host("h2", free_mb=0))
COMING = (*TWO, host("h3", free_mb=0), A, vm("b", "h2", status="migrating", migrating_to="h1"))
GOING = {"status": "migrating", "migrating_to": "h2"}
EMPTIED = host("h1", status="preparing_for_maintenance"), host("h2")
EXPECTED = replace(pending("b", "h2"), expected=True)
SCANT = host("h1"), host("h2", free_mb=5000)


@pytest.mark.parametrize(
    ("parts", "safe"),
    [
        pytest.param((host("h1"), host("h2", free_mb=8000), A, B), False, id="each start takes its memory"),
        pytest.param(
            (host("h1"), host("h2", free_mb=8000), host("h3", free_mb=4096), A, B), True, id="room for both",
        ),
        pytest.param((host("h1"), host("h2", cores=8), LARGE), True, id="cores enough"),
        pytest.param(
            (*FAR, *THREE, A, group("g", TOGETHER, "a", vm_labels=("foreign",))), False,
            id="the engine's filter follows a member on its way in another cluster",
        ),
        pytest.param(
            (*THREE, A, group("g", vms="a", hosts_rule=TOGETHER)), False,
            id="to the engine, a positive group without hosts leaves none",
        ),
        pytest.param(
            (*FULL, A, vm("b", "h1", needs_mb=4096, status="migrating", migrating_to="h2")), None,
            id="what was leaving gives back the memory promised to it, until it has arrived",
        ),
        pytest.param(
            (*FULL, A, vm("b", "h1", needs_mb=4096), pending("b", "h2")), False,
            id="what is only expected to leave has taken nothing",
        ),
        pytest.param((*TWO, vm("b", "h1", **GOING)), True, id="safe at both ends of a migration"),
        pytest.param((*EMPTIED, ha("b", "h1", **GOING)), None, id="no way back from where it migrates"),
        pytest.param((*EMPTIED, ha("b", "h1", migratable=False)), True, id="what cannot leave stays"),
        pytest.param((*EMPTIED, vm("b", "h1")), None, id="it leaves, and where it goes is not known"),
        pytest.param((*TWO, vm("b", "h1", status="migrating")), None, id="a target that is not known"),
        pytest.param((*FULL, ha("b", None), pending("b", "h1")), None, id="a start has taken its room"),
        pytest.param((*TWO, ha("b", None), EXPECTED), True, id="an expected start, with room elsewhere"),
        pytest.param((*SCANT, A, vm("b"), EXPECTED), None, id="an expected start takes its room"),
        pytest.param((*COMING, group("g", APART, "a b")), False, id="a rival on its way there stays"),
        pytest.param((*COMING, group("g", TOGETHER, "a b")), True, id="a peer on its way there stays"),
        pytest.param((cluster(ha_failures=2), *TWO, A), False, id="the cluster sets that two may fail"),
        pytest.param((cluster(ha_failures=1), *TWO, A), True, id="the cluster sets that one may fail"),
        pytest.param(
            (host("h1"), host("h2", **{**CRAMPED, "memory_free_mb": 500}), ha("a", "h1", status="paused")),
            False, id="what is paused needs memory once it is down",
        ),
        pytest.param(
            (
                host("h1"), host("h2", free_mb=6000, free_huge_pages={2048: 2000}), ha("a", "h1", **PAGED),
                ha("b", "h1", **PAGED),
            ),
            False, id="pages that are ready are for one of them, and each takes its memory",
        ),
        pytest.param((host("h1"), vm("a", "h1")), True, id="one host with nothing to protect"),
        pytest.param((host("h1"), A), False, id="one host protects none"),
        pytest.param((host("h1"), host("h2", failover=True), A), True, id="a failover host is a home"),
    ],
)  # fmt: skip
def test_each_state_is_safe_or_not(parts: tuple[build.Part, ...], safe: bool | None) -> None:
    assert of(*parts).safe is safe


@pytest.mark.parametrize(
    ("second", "lost", "safe", "softer"),
    [
        pytest.param(
            host("h2", free_mb=3000), ha("a", "h1", 8192, guaranteed_mb=1024, usage_mem_percent=10), False,
            True, id="memory that is not used must be there for a start",
        ),
        pytest.param(
            host("h2", cores=4, cpu_percent=0), LARGE, False, True, id="too few cores, however idle",
        ),
        pytest.param(
            host("h2", cpu_percent=90, cores=4), ha("a", "h1", usage_cpu_percent=100), True, False,
            id="CPU that is nearly used up refuses no start",
        ),
    ],
)  # fmt: skip
def test_the_engine_itself_judges_otherwise(
    second: build.Part, lost: build.Part, safe: bool, softer: bool
) -> None:
    parts = host("h1"), second, lost
    assert (of(*parts).safe, by_engine(snapshot(*parts), CLUSTER, 1).safe) == (safe, softer)


def test_a_loss_names_all_that_find_no_host_whatever_proves_it() -> None:
    """That `a` is too large proves it; `b` has more CPUs than there are."""
    parts = host("h1"), host("h2", free_mb=5000, cores=4), ha("a", "h1", 8192), ha("b", "h1", vcpus=8)
    (loss,) = of(*parts, ha("c", "h1", 1000)).losses
    assert (loss.unplaced, loss.homes) == (("a", "b"), {"c": "h2"})


def test_placement_keys_refuse_the_only_other_host_where_the_policy_asks_them() -> None:
    wants = (key("SSD", 1, -100, resource="a"), node_key("h2", "SSD", 1))
    assert of(KEYED, *TWO, A, keys=wants).safe is False
    assert of(KEYED, *TWO, A).safe is of(*TWO, A, keys=wants).safe is True


def test_starts_stand_in_an_order_that_all_filters_let_through() -> None:
    """Only a host that is full enough is good enough for `a`: so `b` starts first, and on the same."""
    numbers = {"placement_final": "50", "placement_initial": "80", "placement_overhead": "0"}
    parts = (
        replace(KEYED, scheduling_properties=numbers),
        *(host(name, memory_mb=10000, free_mb=9000) for name in ("h1", "h2")),
        ha("a", "h1", 1000),
    )
    wanting = (key("#RAM", 0, 100, resource="b"), key("#RAM", 1, 100, resource="a"))
    found = of(*parts, ha("b", "h1", 6000), keys=wanting)
    assert [list(one.homes.items()) for one in found.survivals if one.homes] == [[("b", "h2"), ("a", "h2")]]
    assert [loss.unplaced for loss in of(*parts, keys=wanting).losses] == [("a",)]


def test_a_start_may_open_a_host_that_the_engine_closes_before_it() -> None:
    """Its filter follows the peers: at first the foreign one on its way, then `b` as well."""
    near = group("near", TOGETHER, "a", vm_labels=("foreign",))
    tied = group("tied", TOGETHER, "a b")
    found = of(*FAR, *TWO, A, B, near, tied)
    assert [list(one.homes.items()) for one in found.survivals if one.homes] == [[("b", "h2"), ("a", "h2")]]


def test_what_two_hosts_send_to_one_home_must_be_physically_free_there() -> None:
    full = host("h1", free_mb=0), host("h2", free_mb=0)
    found = of(*full, host("h3", **CRAMPED), A, ha("b", "h2"), failures=2)
    assert [loss.hosts for loss in found.losses] == [("h1", "h2"), ("h1", "h3"), ("h2", "h3")]


def test_a_rule_for_starts_alone_is_asked_of_what_runs_now_and_restarts_then() -> None:
    """While `b` does not run in the other rack, `a` would be one too many in that of `c`."""
    hosts = host("h0"), host("h1", tags=("rack-1",)), host("h2", tags=("rack-2",))
    vms = [
        ha(name, "h0", migratable=False, pinned_hosts=("h0", there))
        for name, there in (("a", "h1"), ("b", "h2"))
    ]
    even = build.rule("s", "spread", "a b c", max_skew=1, domain_tags=("rack-",), continuous=False)
    found = of(*hosts, *vms, vm("c", "h1"), even)
    assert [list(one.homes.items()) for one in found.survivals if one.homes] == [[("b", "h2"), ("a", "h1")]]


def test_vms_whose_host_does_not_answer_are_lost_and_those_that_rest_are_named() -> None:
    found = of(
        *THREE, host("h4", status="non_responsive"), ha("a", "h1"), ha("b", "h4", status="unknown"),
        ha("c", None), vm("d"), pending("c", "h2"),
    )  # fmt: skip
    assert found.safe is False
    assert not found.losses
    (lost,) = found.lost
    assert (lost.vm, lost.status, lost.host, lost.host_status) == ("b", "unknown", "h4", "non_responsive")
    assert lost.home is not None
    assert found.outside == (Outside("c", "down"),)


def test_what_is_on_its_way_to_a_host_that_does_not_answer_stays_and_takes_its_peer() -> None:
    silent = host("h1", status="non_responsive"), host("h3", status="non_responsive")
    peer = vm("b", "h2", status="migrating", migrating_to="h3")
    (lost,) = of(*silent, host("h2"), ha("a", "h1"), peer, group("g", TOGETHER, "a b")).lost
    assert (lost.vm, lost.home) == ("a", "h2")


@pytest.mark.parametrize("status", ["preparing_for_maintenance", "non_operational"])
def test_a_host_that_answers_and_is_not_up_may_fail_as_well(status: str) -> None:
    parts = host("h1", status=status), ha("a", "h1", migratable=False)
    assert of(*parts, host("h2")).safe is True
    full = of(*parts, host("h2", free_mb=1024), host("h3", free_mb=1024))
    assert [(loss.hosts, loss.unplaced) for loss in full.losses] == [(("h1",), ("a",))]
    assert not full.lost


@pytest.mark.parametrize("host_of_b", [None, "h2"])
def test_what_crashed_or_is_unknown_is_lost_until_it_runs_and_finds_a_host_or_none(
    host_of_b: str | None,
) -> None:
    status = {"status": "unknown"} if host_of_b else {"crashed": True}
    lost = ha("a", None, crashed=True), ha("b", host_of_b, **status)
    silent = host("h2", status="preparing_for_maintenance")
    both = of(host("h1", free_mb=8192), silent, *lost)
    assert (both.safe, [one.home for one in both.lost]) == (False, ["h1", "h1"])
    one = of(host("h1", free_mb=6000), silent, *lost)
    assert sorted(str(each.home) for each in one.lost) == ["None", "h1"]
    assert of(host("h1"), ha("a", "h1"), host("h2")).lost == ()


def test_in_doubt_nothing_is_lost_nor_survived_and_no_host_refuses() -> None:
    doubtful = host("h2", free_mb=0, memory_uncounted=True)
    found = of(host("h1"), doubtful, A, ha("b", None, crashed=True))
    assert (found.safe, found.losses, found.survived, found.unjudged) == (False, (), 0, 2)
    assert [one.unjudged for one in found.lost] == [True]
    assert by_engine(snapshot(host("h1"), doubtful, A), CLUSTER, 1).safe is None


def test_survivals_of_two_hosts_may_not_reckon_with_a_peer_that_goes_with_the_other() -> None:
    """The group is split already; `a` may join the peer that is leaving h2, but not if h2 fails as well."""
    leaving = vm("p", "h2", status="migrating", migrating_to="h3")
    parts = (*THREE, host("h4", free_mb=0), A, leaving, vm("q", "h4"), group("g", TOGETHER, "a p q"))
    for found in (of(*parts, failures=2), by_engine(snapshot(*parts), CLUSTER, 2)):
        assert [loss.hosts for loss in found.losses] == [("h1", "h2")]


def odd_room(state: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Lets a VM start only where an even number of VMs are on their way: nobody can know that."""
    coming = [host for hosts in state.pending_hosts.values() for host in hosts]
    return tuple(Verdict(host, coming.count(host) % 2 == 0) for host in request.candidate_hosts)


@pytest.fixture
def _third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(name="ThirdParty", kind=UnitKind.FILTER, filter=odd_room)
    monkeypatch.setattr(rule_list, "LISTED", (*rule_list.LISTED, rule))


@pytest.mark.usefixtures("_third_party")
def test_any_filter_of_the_catalogue_is_asked_and_every_order_tried() -> None:
    found = of(*THREE, A, B)
    assert found.safe is True
    assert [{*one.homes.values()} for one in found.survivals if one.homes] == [{"h2", "h3"}]
    assert [len(loss.unplaced) for loss in of(*TWO, A, B).losses] == [1]


@pytest.mark.usefixtures("_third_party")
def test_what_is_too_much_to_try_is_said_and_never_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovirt_placement.rules.failover.check.SEARCH_BUDGET", 5)
    found = of(*TWO, A, B)
    assert (found.safe, found.unknown, found.survived) == (None, (Unknown(("h1",)),), 1)


def test_ended_budget_is_said_by_both_measures() -> None:
    parts = [host(f"h{number}") for number in range(5)]
    state = snapshot(*parts, ha("a", "h0"))
    for found in (check(state, CLUSTER, 2, steps=4), by_engine(state, CLUSTER, 2, steps=4)):
        assert found.safe is None
        assert found.survived + found.unjudged == 5 + 10
        assert found.unjudged > 0
    assert check(state, CLUSTER, 1, steps=0).failures_survived == 0


HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
FOREIGN = "x"
GROUPS = st.sampled_from([TOGETHER, TOGETHER, APART, APART, SOFT_APART])
HOST_RULES = st.sampled_from([build.DISABLED, build.DISABLED, TOGETHER, APART])


@st.composite
def hosts(draw: st.DrawFn, name: str) -> Host:
    return build.host(
        name,
        memory_mb=draw(st.sampled_from([4096, 16384])),
        free_mb=draw(st.sampled_from([-500, 2000, 3000, 5000, 9000])),
        memory_free_mb=draw(st.sampled_from([None, 2000, 4000, 6000])),
        swap_free_mb=draw(st.sampled_from([None, 0, 1000])),
        cores=draw(st.sampled_from([2, 4])),
        status=draw(st.sampled_from(["up", "up", "up", "up", "maintenance", "non_operational"])),
    )


@st.composite
def vms(draw: st.DrawFn, name: str) -> Vm:
    at = draw(st.sampled_from((*HOSTS, "h1", "h2", None)))
    to = draw(st.sampled_from((None, None, None, *HOSTS))) if at else None
    return build.vm(
        name,
        at,
        ha=draw(st.sampled_from([True, True, True, False])),
        needs_mb=draw(st.sampled_from([1000, 2000, 4000])),
        usage_mem_percent=draw(st.sampled_from([None, 10, 100])),
        vcpus=draw(st.sampled_from([1, 1, 4])),
        migratable=draw(st.sampled_from([True, True, True, False])),
        pinned_hosts=draw(st.sampled_from([(), ("h1", "h2")])),
        **({"status": "migrating", "migrating_to": to} if to not in {None, at} else {}),
    )


def keys(draw: st.DrawFn) -> tuple[PlacementKey, ...]:
    """What a VM wants of hosts; a full host may be what it wants."""

    weights = st.sampled_from([-30.0, 40.0, 100.0])
    names = st.sampled_from(["SSD", "#RAM", "#CPU"])
    wanting = draw(st.sets(st.sampled_from(VMS), max_size=3))
    return (
        *(node_key(host, "SSD", draw(st.sampled_from([0.0, 1.0]))) for host in HOSTS),
        *(key(draw(names), 1.0, draw(weights), resource=vm) for vm in sorted(wanting)),
    )


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    keyed = KEYED.scheduling_policy
    policy = draw(st.sampled_from([None, SchedulingPolicy(), keyed, keyed]))
    refusing = draw(st.integers(0, 3)) == 0 and policy is not None
    return {
        "scheduling_policy": policy,
        "scheduling_properties": {"affinity_missing_unit": "reject"} if refusing else {},
    }


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    members = st.sets(st.sampled_from(VMS), min_size=2, max_size=3).map(lambda some: " ".join(sorted(some)))
    listed = st.sets(st.sampled_from(HOSTS), max_size=3).map(lambda some: " ".join(sorted(some)))
    drawn = [draw(vms(vm)) for vm in VMS]
    state = snapshot(
        build.cluster(**draw(policies())),
        build.cluster("cluster2"),
        *(draw(hosts(name)) for name in HOSTS),
        build.host("far", cluster="cluster2"),
        *drawn,
        build.vm(FOREIGN, "far", cluster="cluster2"),
        build.label("foreign", FOREIGN),
        *(
            build.group(
                f"g{number}",
                draw(GROUPS),
                draw(members),
                hosts_rule=draw(HOST_RULES),
                hosts=draw(listed),
                vm_labels=draw(st.sampled_from([(), (), (), ("foreign",)])),
            )
            for number in range(draw(st.integers(0, 3)))
        ),
        *(build.pending(vm.id, draw(st.sampled_from(HOSTS))) for vm in drawn if draw(st.integers(0, 5)) == 0),
    )
    return replace(state, placement_keys=keys(draw))


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(worlds(), st.integers(1, 2))
def test_safe_is_an_order_of_starts_that_all_filters_let_through(state: Snapshot, failures: int) -> None:
    answering = {"up", "preparing_for_maintenance", "non_operational"}
    hosts = state.hosts_of_cluster[CLUSTER]
    failing = [host.id for host in hosts if host.status in answering]
    silent = tuple(host.id for host in hosts if host.id not in failing)
    gone = {vm.id for vm in state.vms if vm.ha and vm.host in silent}
    found = check(state, CLUSTER, failures)
    lost = lost_sets(state, failing, failures)
    assert [loss.hosts for loss in found.losses] == smallest(lost)
    assert found.safe is (False if lost or gone else None if lost_later(state, failing, failures) else True)
    assert {one.vm for one in found.lost} == gone
    assert not gone or all(one.home for one in found.lost) == survives(state, silent)
    assert (found.unjudged, found.unknown) == (0, ())
    for one in found.survivals:
        assert passes(state, one.hosts, one.homes)
