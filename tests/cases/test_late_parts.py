"""What has not been read yet refuses nothing, licenses nothing, and takes back no alert."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.watchers.verdict import ReservationState, judge
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.answers.rules import check_lines, rules_check
from ovirt_placement.answers.status.clusters import Health, cluster_status
from ovirt_placement.answers.status.clusters import judge as judge_health
from ovirt_placement.answers.violations import violations
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Host, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.model.record import MemberSearch
from ovirt_placement.model.snapshot import Part
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.outages import survived
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.requests import make_room
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Request
from ovirt_placement.rules.engine_filters import CPU_OVERLOADED_FILTER, MEMORY_FILTER
from ovirt_placement.rules.failover.check import check
from ovirt_placement.rules.failover.outcomes import ForeseenFailures
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.rules.placement_rules.units import RULE_FILTER
from tests.builders import CLUSTER, cluster, host, key, node_key, rule, snapshot, vm
from tests.examples import examples

_HOSTS = ("h0", "h1", "h2")
_VMS = ("v0", "v1", "v2", "v3")
_FILTERS: tuple[Rule, ...] = (RULE_FILTER, KEY_FILTER, CPU_OVERLOADED_FILTER, MEMORY_FILTER)
_SEARCH = "name=v*"
_UNITS = SchedulingPolicy(
    filters=("PlacementRuleFilter", "PlacementKeyFilter"), engine_filters=("CPUOverloaded", "Memory")
)

_RULES = st.sampled_from(
    [
        rule("r", "exclusive_hosts", "v0", hosts="tag:licensed"),
        rule("r", "spread", " ".join(_VMS), max_skew=1, domain_tags=("rack-",)),
        rule("r", "at_most_per_host", "tag:db", most=1),
        rule("r", "at_most_per_host", f"search:{_SEARCH}", most=1),
        rule("r", "at_most_per_host", " ".join(_VMS), most=2),
    ]
)
_HOST_TAGS = st.lists(st.sampled_from(["licensed", "rack-1", "rack-2"]), max_size=2, unique=True)


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    """A cluster whose memory is scarce, with a rule, keys and reservation."""
    hosts = [
        host(
            name,
            memory_mb=6000,
            free_mb=draw(st.sampled_from([900, 2500])),
            cpu_percent=draw(st.sampled_from([5.0, 95.0])),
            measured=True,
            tags=tuple(draw(_HOST_TAGS)),
        )
        for name in _HOSTS
    ]
    vms = [
        vm(
            name,
            draw(st.sampled_from([None, *_HOSTS])),
            memory_mb=512,
            ha=True,
            tags=("db",) * draw(st.booleans()),
            usage_cpu_percent=draw(st.sampled_from([1.0, 50.0])),
            custom_properties={"hugepages": "2048"} if draw(st.booleans()) else {},
        )
        for name in _VMS
    ]
    keys = (
        *(node_key(name, "gold", float(name == "h0")) for name in _HOSTS),
        key("gold", 1.0, -100.0, resource="v0"),
    )
    found = draw(st.sampled_from([(), ("v0", "v1"), _VMS]))
    return replace(
        snapshot(cluster(ha_reservation=True, scheduling_policy=_UNITS), *hosts, *vms),
        placement_rules=(draw(_RULES),),
        placement_keys=draw(st.sampled_from([(), keys])),
        member_searches=(MemberSearch(of="vms", text=_SEARCH, found=found),),
    )


def _hosts(state: Snapshot, change: Callable[[Host], Host]) -> Snapshot:
    return replace(state, hosts=tuple(map(change, state.hosts)))


def _vms(state: Snapshot, change: Callable[[Vm], Vm]) -> Snapshot:
    return replace(state, vms=tuple(map(change, state.vms)))


_UNMEASURED = {"cpu_percent": None, "measured": False, "memory_free_mb": None, "swap_free_mb": None}
#: How a state looks without each part.
WITHOUT: dict[str, Callable[[Snapshot], Snapshot]] = {
    "host_tags": lambda state: _hosts(state, lambda one: replace(one, tags=())),
    "host_statistics": lambda state: _hosts(state, lambda one: replace(one, **_UNMEASURED)),
    "vm_statistics": lambda state: _vms(state, lambda one: replace(one, usage_cpu_percent=None)),
    "vm_details": lambda state: _vms(state, lambda one: replace(one, tags=())),
    "stored": lambda state: replace(state, placement_rules=(), placement_keys=()),
    "searches": lambda state: replace(state, member_searches=()),
}
#: The same state with what another has of a part.
FILLED: dict[str, Callable[[Snapshot, Snapshot], Snapshot]] = {
    "host_tags": lambda one, other: _hosts(
        one, lambda each: replace(each, tags=other.host_by_id[each.id].tags)
    ),
    "host_statistics": lambda one, other: _hosts(
        one,
        lambda each: replace(
            each, cpu_percent=other.host_by_id[each.id].cpu_percent, measured=True,
            memory_free_mb=other.host_by_id[each.id].free_mb, swap_free_mb=0,
            free_huge_pages={2048: other.host_by_id[each.id].free_mb // 4},
        ),
    ),
    "vm_statistics": lambda one, other: _vms(
        one, lambda each: replace(each, usage_cpu_percent=other.vm_by_id[each.id].usage_cpu_percent)
    ),
    "vm_details": lambda one, other: _vms(one, lambda each: replace(each, tags=other.vm_by_id[each.id].tags)),
    "stored": lambda one, other: replace(
        one, placement_rules=other.placement_rules, placement_keys=other.placement_keys
    ),
    "searches": lambda one, other: replace(one, member_searches=other.member_searches),
}  # fmt: skip


def lacking(state: Snapshot, part: str) -> Snapshot:
    unread: tuple[Part, ...] = () if part == "searches" else (part,)  # type: ignore[assignment]
    return replace(WITHOUT[part](state), unread=unread)


def _is_known(reasons: tuple[object, ...]) -> bool:
    return all(getattr(one, "kind", None) is not NOT_KNOWN_YET for one in reasons)


@pytest.mark.parametrize("part", sorted(WITHOUT))
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_no_verdict_without_a_part_differs_from_what_it_is_with_any_value_of_it(
    part: str, data: st.DataObject
) -> None:
    state = data.draw(states())
    values = [FILLED[part](state, other) for other in data.draw(st.lists(states(), min_size=2, max_size=2))]
    late = lacking(state, part)
    request = Request(vms=("v0",), candidate_hosts=_HOSTS)
    for unit in _FILTERS:
        assert unit.filter is not None
        with_each = [{one.host: one.accepted for one in unit.filter(value, request)} for value in values]
        for verdict in unit.filter(late, request):
            if not verdict.accepted or _is_known(verdict.reasons):
                assert all(each[verdict.host] is verdict.accepted for each in with_each), (unit.name, verdict)
    known = {(one.constraint.groups, one.offenders) for one in find_violations(late, CLUSTER)}
    answer = violations(late, late.clusters)
    for value in values:
        full = {(one.constraint.groups, one.offenders) for one in find_violations(value, CLUSTER)}
        assert known <= full
        assert known == full or answer.unknown
    safe = check(late, CLUSTER).safe
    assert safe is None or all(check(value, CLUSTER).safe is safe for value in values)
    assert not make_plan(late, CLUSTER).steps or not cluster_status(late, late.clusters[0].id).doubt
    status = cluster_status(late, late.clusters[0].id)
    if status.doubt:
        assert judge_health(None, (), [status], None, None)[0] is not Health.HEALTHY


TAGGED = snapshot(
    cluster(ha_reservation=True),
    *(host("h0", tags=("licensed",)), host("h1")),
    *(vm("v0", "h1"), vm("v1", "h1", ha=True)),
    rule("r", "exclusive_hosts", "v0", hosts="tag:licensed"),
)
LATE = lacking(TAGGED, "host_tags")
_WHY = "the tags of hosts have not been read yet"


def test_everything_says_that_it_is_not_known_yet() -> None:
    assert list(check_lines(rules_check(LATE))) == [f"not known yet: placement rule r: {_WHY}"]
    assert violations(LATE, LATE.clusters).unknown == (f"placement rule r: {_WHY}",)
    planned = text(plan_record(make_plan(LATE, CLUSTER), LATE))
    assert planned.splitlines() == ["Cluster cluster1: nothing is planned.", f"  Not now: {_WHY}"]
    room = make_room(replace(LATE, vms=(*LATE.vms, vm("v2"))), "v2")
    assert room.host is None
    assert all(not _is_known(reasons) for _, reasons in room.refusals)
    emptied = plan_maintenance(LATE, ["h1"])
    assert (emptied.rounds, len(emptied.blocked)) == ((), 1)
    assert survived(LATE, CLUSTER) == ForeseenFailures(0, exact=False)
    assert cluster_status(LATE, CLUSTER).failures_survived == 0
    verdict = judge(LATE, CLUSTER, HaSettings(domain_tags=("rack-",)))
    assert (verdict.state, verdict.facts["reason"]) == (ReservationState.UNKNOWN, _WHY)


@pytest.mark.parametrize("part", ["stored", "vm_details", "host_statistics"])
def test_violations_say_that_keys_and_rules_are_not_known_yet(part: str) -> None:
    state = snapshot(cluster(scheduling_policy=_UNITS), host("h0"), vm("v0", "h0"))
    assert violations(state, state.clusters).unknown == ()
    (why,) = violations(lacking(state, part), state.clusters).unknown
    assert why.endswith("yet")


def test_a_search_that_was_not_answered_is_why_its_rule_is_not_known() -> None:
    asked = snapshot(host("h0"), vm("v0", "h0"), rule("r", "at_most_per_host", f"search:{_SEARCH}", most=1))
    (why,) = violations(asked, asked.clusters).unknown
    assert why == "placement rule r: a search has not been answered yet"


def test_with_all_read_there_is_a_verdict_again() -> None:
    assert list(check_lines(rules_check(TAGGED))) == ["No mistakes in 1 placement rule."]
    assert judge(TAGGED, CLUSTER, HaSettings()).state is not ReservationState.UNKNOWN


#: One leaves a host that is emptied: once it has arrived, nothing has room for it but where it is.
ARRIVING = snapshot(
    cluster(ha_reservation=True),
    host("h1", status="preparing_for_maintenance"),
    host("h2"),
    vm("v0", "h1", ha=True, status="migrating", migrating_to="h2"),
)
_MOMENT = "each failure is survived at this moment; "


@pytest.mark.parametrize(
    ("state", "why"),
    [
        pytest.param(ARRIVING, "that of h2 is not once v0 is on h2", id="it arrives"),
        pytest.param(
            replace(ARRIVING, vms=(replace(ARRIVING.vms[0], migrating_to=None),)),
            "where these VMs go is not known: v0", id="where to is not known",
        ),
    ],
)  # fmt: skip
def test_everything_says_that_safe_does_not_last(state: Snapshot, why: str) -> None:
    found = check(state, CLUSTER)
    assert (found.safe, found.losses, found.doubt, found.failures_survived) == (None, (), _MOMENT + why, 0)
    known = survived(state, CLUSTER)
    assert known is not None
    assert known.count == 0
    status = cluster_status(state, CLUSTER)
    health, reasons = judge_health(None, (), (status,), None, None)
    text = "not all failures of hosts could be judged while VMs are on their way (ovirt-placement ha-check)"
    assert (status.ha_safe, health, reasons) == (None, Health.DEGRADED, (f"cluster {CLUSTER}: {text}",))
    verdict = judge(state, CLUSTER, HaSettings())
    assert (verdict.state, verdict.facts["reason"]) == (ReservationState.UNKNOWN, found.doubt)
