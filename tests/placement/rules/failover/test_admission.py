"""HA admission control: exactly the starts are refused after which a failure is survived no more."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Cluster, Pending, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.rules.elements.resources import physical_mb
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict
from ovirt_placement.rules.failover import admission
from ovirt_placement.rules.failover.admission import (
    FILTER,
    RESERVE_NEEDED,
    RESERVE_UNKNOWN,
    filter_hosts,
    rank_hosts,
)
from ovirt_placement.units import PARAMETERS
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.failover.restarting import arrive, lost_sets, used_mb, with_less
from tests.placement.rules.failover.test_check import HOSTS, VMS, worlds

RESERVING = cluster(ha_reservation=True)


def asked(
    state: Snapshot, name: str, hosts: str = "h1 h2 h3", *, as_engine: bool = True, **parameters: str
) -> dict[str, Verdict]:
    request = Request((name,), tuple(hosts.split()), as_engine=as_engine, parameters=parameters)
    return {verdict.host: verdict for verdict in filter_hosts(state, request)}


def accepted(state: Snapshot, name: str, hosts: str = "h1 h2 h3", **options: Any) -> str:
    found = asked(state, name, hosts, **options)
    return " ".join(host for host, verdict in found.items() if verdict.accepted)


def tight(*more: Vm, h1: str = "up", reserving: Cluster = RESERVING, **h3: Any) -> Snapshot:
    """Each host has 4000 MiB left, unless h3 has other fields; the VM on h1 needs that much elsewhere."""
    third = host("h3", **{"free_mb": 4000, **h3})
    hosts = host("h1", free_mb=4000, status=h1), host("h2", free_mb=4000), third
    return snapshot(reserving, *hosts, vm("db", "h1", ha=True, needs_mb=4000), *more)


NEW, NEW_LARGE = vm("new", needs_mb=1000), vm("new", needs_mb=4000)


def test_a_start_that_takes_the_last_room_is_refused_and_says_who_needs_it() -> None:
    assert accepted(tight(NEW), "new") == accepted(tight(NEW_LARGE), "new") == "h1 h2 h3"
    found = asked(tight(NEW, free_mb=3000), "new")
    assert [name for name, verdict in found.items() if verdict.accepted] == ["h1", "h3"]
    assert found["h2"].reasons == (Reason(RESERVE_NEEDED, vm="db", status="h1"),)


def test_of_hosts_that_are_not_known_to_be_of_the_cluster_nothing_is_said() -> None:
    full = tight(NEW_LARGE, free_mb=3000)
    full = snapshot(*full.clusters, cluster("other"), *full.hosts, host("moved", cluster="other"), *full.vms)
    assert accepted(full, "new", "h1 h2 moved unknown") == "h1 moved unknown"
    ranks = {
        one.host: one.rank for one in rank_hosts(full, Request(("new",), ("h2", "moved"), as_engine=True))
    }
    assert ranks["moved"] < ranks["h2"]


HA_NEW = vm("new", ha=True, needs_mb=4000)
#: The reserve is there for one that has crashed.
CRASHED = replace(HA_NEW, crashed=True)
FULL = tight(NEW_LARGE, vm("runs", "h1", needs_mb=4000), free_mb=0)
OFF = replace(FULL, clusters=(cluster(),))
GIANT = vm("giant", "h2", ha=True, needs_mb=50_000)
TWO_MAY_FAIL = replace(RESERVING, ha_failures=2)
PAIR = (RESERVING, host("h1"), vm("db", "h1", ha=True, needs_mb=1000), vm("new"))
EMPTIED = (
    RESERVING, host("h1", status="preparing_for_maintenance"), host("h2", free_mb=4000),
    host("h3", free_mb=4000), vm("db", "h1", ha=True, needs_mb=4000, status="migrating", migrating_to="h2"),
)  # fmt: skip
APART_FROM_DB = group("g", APART, "db new")


def test_what_is_on_its_way_is_judged_once_for_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine asks filter and weight about each start, and in a large cluster some VM always moves."""
    made: list[object] = []
    kept = admission.Sweep
    monkeypatch.setattr(admission, "Sweep", lambda *asked: made.append(asked) or kept(*asked))
    state = snapshot(RESERVING, *EMPTIED[1:], NEW)
    verdicts = asked(state, "new")
    assert len(made) == 2
    assert asked(state, "new") == verdicts
    assert len(made) == 2


@pytest.mark.parametrize(
    ("state", "name", "hosts", "as_engine", "expected"),
    [
        # On h2, h1 cannot be left any more; on h1, two cannot go to h2; on h3 it goes to h1.
        pytest.param(tight(HA_NEW, free_mb=100), "new", "h1 h2 h3", True, "h3", id="it needs a host itself"),
        pytest.param(tight(CRASHED, free_mb=100), "new", "h1 h2 h3", True, "h1 h2 h3", id="crashed"),
        pytest.param(FULL, "new", "h1 h2 h3", True, "h1 h3", id="no room"),
        pytest.param(FULL, "runs", "h1 h2 h3", True, "h1 h2 h3", id="a migration of the engine"),
        pytest.param(FULL, "runs", "h1 h2 h3", False, "h1 h3", id="a migration of ours"),
        pytest.param(OFF, "new", "h1 h2 h3", True, "h1 h2 h3", id="no reservation"),
        pytest.param(OFF, "runs", "h1 h2 h3", False, "h1 h2 h3", id="no reservation, a migration of ours"),
        pytest.param(tight(GIANT, NEW), "new", "h1 h2", True, "h1 h2", id="unsafe already"),
        pytest.param(tight(GIANT, NEW, free_mb=3000), "new", "h1 h2 h3", True, "h1 h3", id="unsafe and full"),
        pytest.param(
            tight(NEW, h1="preparing_for_maintenance", free_mb=3000), "new", "h2 h3", True, "h3",
            id="a host that answers and is not up may fail as well",
        ),
        pytest.param(tight(NEW, reserving=TWO_MAY_FAIL), "new", "h1 h2 h3", True, "h1", id="two may fail"),
        pytest.param(
            replace(tight(vm("new", needs_mb=100)), affinity_groups=(APART_FROM_DB,)), "new", "h1 h2 h3",
            True, "h1 h2 h3", id="apart, and a third host",
        ),
        pytest.param(
            snapshot(*EMPTIED, NEW), "new", "h2 h3", True, "h2",
            id="what is needed once a migration has arrived",
        ),
        pytest.param(snapshot(*PAIR, host("h2"), APART_FROM_DB), "new", "h1 h2", True, "h1", id="apart"),
        pytest.param(
            snapshot(*PAIR, host("h2", free_mb=1100), group("g", TOGETHER, "db new")), "new", "h1 h2", True,
            "h1", id="together, and full",
        ),
    ],
)  # fmt: skip
def test_each_start(state: Snapshot, name: str, hosts: str, as_engine: bool, expected: str) -> None:
    assert accepted(state, name, hosts, as_engine=as_engine) == expected


@pytest.mark.parametrize("status", ["non_responsive", "down", "reboot", "kdumping"])
def test_after_a_failure_highly_available_vms_start_and_others_leave_them_the_room(status: str) -> None:
    vms = vm("lost", ha=True, needs_mb=4000), NEW_LARGE
    failed = tight(*vms, status=status)
    assert (accepted(failed, "lost", "h1 h2"), accepted(failed, "new", "h1 h2")) == ("h1 h2", "h1")
    assert accepted(tight(*vms, status="maintenance"), "lost", "h1 h2") == ""


def test_a_vm_that_crashed_starts_again_where_it_was_if_all_was_safe_with_it() -> None:
    state = tight()
    crashed = replace(state.vms[0], host=None, status="down")
    hosts = (replace(state.hosts[0], free_mb=8000), *state.hosts[1:])
    assert "h1" in accepted(replace(state, hosts=hosts, vms=(crashed,)), "db")


@pytest.mark.parametrize("failures", [1, 2])
def test_the_last_vm_leaves_a_host_that_is_not_up(failures: int) -> None:
    """Which may fail before, and has nothing to lose afterwards."""
    hosts = host("h1", status="non_operational"), *map(host, ("h2", "h3", "h4"))
    state = snapshot(replace(RESERVING, ha_failures=failures), *hosts, vm("db", "h1", ha=True))
    assert accepted(state, "db", "h2 h3 h4", as_engine=False) == "h2 h3 h4"


def test_a_domain_fails_whole() -> None:
    state = tight(NEW)
    racks = zip(state.hosts, ("rack-1", "rack-1", "rack-2"), strict=True)
    tagged = replace(state, hosts=tuple(replace(one, tags=(rack,)) for one, rack in racks))
    found = asked(tagged, "new", ha_admission_domain_tags="rack-")
    assert [name for name, verdict in found.items() if verdict.accepted] == ["h1", "h2"]
    assert found["h3"].reasons == (Reason(RESERVE_NEEDED, vm="db", status="rack-1"),)


def test_a_domain_may_be_a_list_of_hosts_by_name_or_id() -> None:
    state = tight(NEW)
    named = replace(state, hosts=(state.hosts[0], replace(state.hosts[1], name="two"), state.hosts[2]))
    lists = "feed-a:h1,two/feed-b:h3"
    found = asked(named, "new", ha_admission_domains=lists)
    assert [name for name, verdict in found.items() if verdict.accepted] == ["h1", "h2"]
    assert found["h3"].reasons == (Reason(RESERVE_NEEDED, vm="db", status="feed-a"),)
    (pattern,) = re.findall(r"ha_admission_domains=([^;]*)", PARAMETERS[FILTER.name])
    for value in (lists, "feed:h1", "feed", "a:h1,", "a:h1/"):
        assert bool(re.fullmatch(pattern, value)) is (value in (lists, "feed:h1"))


def test_what_a_list_names_that_is_no_host_is_noted() -> None:
    twins = (host("h1"), host("h2", name="twin"), host("h3", name="twin"))
    lists = {"ha_admission_domains": "feed-a:h1,gone/feed-b:h2,twin"}
    state = snapshot(cluster(ha_reservation=True, scheduling_properties=lists), *twins, vm("new"))
    assert [reason.status for reason in FILTER.notes(state, "new")] == ["gone", "twin"]
    assert FILTER.notes(state, "nobody") == ()


def test_what_is_only_expected_refuses_nothing_but_ranks() -> None:
    """Two starts at once: the second is let through by what is confirmed, and goes where it harms least."""
    state = tight(NEW, vm("first", needs_mb=1000))
    expecting = replace(state, pending=(Pending("first", "h3", expected=True),))
    assert accepted(expecting.confirmed, "new") == "h1 h2 h3"
    assert accepted(expecting, "new") == "h1 h3"  # shown by why as expected, not confirmed
    ranks = rank_hosts(expecting, Request(("new",), ("h1", "h2", "h3")))
    assert {weight.host: weight.rank for weight in ranks} == {"h1": 0, "h2": 1, "h3": 0}
    assert not any(reason.kind.veto for weight in ranks for reason in weight.reasons)


def test_what_takes_too_long_is_accepted_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_STEPS", 0)
    found = asked(tight(NEW, free_mb=3000), "new")
    assert all(verdict.accepted for verdict in found.values())
    assert found["h2"].reasons == (Reason(RESERVE_UNKNOWN),)


def check_starts(state: Snapshot, name: str, hosts: tuple[str, ...], **parameters: str) -> None:
    """Exactly the starts are refused after which less is survived, now or once all has arrived."""
    found = asked(state, name, " ".join(hosts), **parameters)
    now, then = lost_by_start(state, name, hosts), lost_by_start(arrive(state), name, hosts)
    for place in hosts:
        assert found[place].accepted is not bool(now[place] or then[place]), (place, now, then)


def lost_by_start(state: Snapshot, name: str, hosts: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """By host, what is survived no more once the VM runs there."""
    up = [one.id for one in state.hosts_of_cluster[CLUSTER] if one.up]
    failures, found = state.clusters[0].ha_failures, {}
    lost_before = lost_sets(state, up, failures)
    for place in hosts:
        vms = (replace(one, host=place, status="up") if one.id == name else one for one in state.vms)
        after = replace(with_less(state, state.vm_by_id[name], place), vms=tuple(vms))
        # A set that contains one which is lost counts as lost.
        found[place] = [
            failed
            for failed in lost_sets(after, up, failures)
            if not any(set(one) <= set(failed) for one in lost_before)
        ]
    return found


@st.composite
def starting(draw: st.DrawFn) -> tuple[Snapshot, str]:
    """A cluster with a reservation, and a VM that is to start; often nothing but memory and rivals counts."""
    state = draw(worlds())
    in_order = (replace(one, status="up" if one.up else "maintenance") for one in state.hosts)
    state = replace(state, hosts=tuple(in_order))  # after a failure other rules apply
    plain = draw(st.booleans())
    one = draw(st.sampled_from(VMS))
    clusters = (
        replace(
            state.clusters[0], ha_reservation=True, ha_failures=draw(st.integers(1, 2)),
            **({"scheduling_policy": SchedulingPolicy()} if plain else {}),
        ),
        *state.clusters[1:],
    )  # fmt: skip
    free, physical = st.sampled_from([2000, 4000, 6000, 12_000]), st.sampled_from([None, 2000, 4000, 6000])
    hosts = (
        tuple(replace(host, free_mb=draw(free), memory_free_mb=draw(physical)) for host in state.hosts)
        if plain
        else state.hosts
    )
    vms = tuple(
        replace(each, host=None, status="down", migrating_to=None) if each.id == one else each
        for each in state.vms
    )
    pending = tuple(entry for entry in state.pending if entry.vm != one and not plain)
    return replace(state, clusters=clusters, hosts=hosts, vms=vms, pending=pending), one


@pytest.mark.system
@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(starting())
def test_exactly_the_starts_are_refused_after_which_less_is_survived(drawn: tuple[Snapshot, str]) -> None:
    state, name = drawn
    check_starts(state, name, HOSTS, **state.clusters[0].scheduling_properties)


@st.composite
def physically_tight(draw: st.DrawFn) -> list[Snapshot]:
    """States that differ in what is physically free on h2, the only host for what fails with h1.

    It is about as much as that takes, and as a VM that is to start takes besides.
    """
    usage = st.sampled_from([None, 10, 100])
    sizes = st.sampled_from([1000, 2000, 3000])

    def drawn_vm(name: str, at: str | None, ha: bool) -> Vm:
        return vm(name, at, ha=ha, needs_mb=draw(sizes), usage_mem_percent=draw(usage))

    lost = [drawn_vm(name, "h1", True) for name in draw(st.sampled_from(["a", "ab"]))]
    new, coming = drawn_vm("new", None, draw(st.booleans())), drawn_vm("coming", None, False)
    pending = [Pending("coming", "h2")] if draw(st.booleans()) else []
    at_once = sum(one.memory_mb + 64 + one.memory_mb // 512 for one in lost)
    at_once += 64 + coming.memory_mb // 512 if pending else 0
    swap_mb, memory_mb = draw(st.sampled_from([0, 300])), draw(st.sampled_from([0, 20_000]))
    own = {0, used_mb(new), new.memory_mb, new.memory_mb + 64 + new.memory_mb // 512}
    first = host("h1", free_mb=draw(st.sampled_from([0, 8000])), memory_free_mb=8000, swap_free_mb=0)
    full = host(
        "h3", free_mb=8000, memory_mb=0, memory_free_mb=draw(st.sampled_from([0, 900])), swap_free_mb=0
    )
    return [
        snapshot(
            replace(RESERVING, scheduling_policy=SchedulingPolicy()), first,
            host("h2", free_mb=20_000, memory_mb=memory_mb, swap_free_mb=swap_mb,
                 memory_free_mb=at_once + more - swap_mb - memory_mb // 100),
            full, *lost, new, coming, *pending,
        )
        for more in sorted({each + beyond for each in own for beyond in (-1, 0, 1)})
    ]  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(physically_tight())
def test_what_failures_send_to_a_host_takes_of_its_physical_memory(states: list[Snapshot]) -> None:
    for state in states:
        check_starts(state, "new", ("h1", "h2", "h3"))


def test_a_crashed_vm_that_was_counted_may_start_wherever_the_others_let_it() -> None:
    """Nobody else has room for it: with it the failure of its host is not survived, wherever it runs."""
    state = tight(vm("db2", ha=True, needs_mb=4000))
    hosts = (state.hosts[0], *(replace(one, free_mb=100) for one in state.hosts[1:]))
    lost = replace(state, hosts=hosts, vms=(replace(state.vms[0], host=None, status="down"),))
    assert accepted(lost, "db") == "h2 h3"
    crashed = replace(lost, vms=(replace(lost.vms[0], crashed=True),))
    assert accepted(crashed, "db") == "h1 h2 h3"
    ranks = {one.host: one.rank for one in rank_hosts(crashed, Request(("db",), ("h1", "h2")))}
    assert ranks["h1"] > ranks["h2"]
    common = replace(crashed, vms=(replace(crashed.vms[0], ha=False), vm("x", "h3", ha=True, needs_mb=4000)))
    assert accepted(common, "db", "h1") == ""


@pytest.mark.parametrize(("percent", "taken"), [(None, 4096), (100, 4096), (50, 2048)])
def test_a_vm_in_huge_pages_takes_what_it_uses_or_all_where_nobody_knows(
    percent: int | None, taken: int
) -> None:
    """Its pages are not among those that must be free for small ones."""
    large = vm("a", memory_mb=4096, usage_mem_percent=percent, custom_properties={"hugepages": "2048"})
    assert physical_mb(large) < 2048
    assert admission._physical_mb(large) == taken
