"""Contradictions are found again only after a change, and in time; reasons and moments as sentences."""

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement import rules
from ovirt_placement.answers import conflicts
from ovirt_placement.answers.conflicts import judge_rules
from ovirt_placement.answers.decisions import (
    EngineSaid,
    HostInDecision,
    PastReason,
    at_time,
    names_one_for_all,
    remedies,
    said_of_host,
)
from ovirt_placement.answers.decisions.at_time import DecisionsAtDocument, at_time_text, read_moment
from ovirt_placement.answers.decisions.past import RefusedPlacementsDocument, why_now_or_then
from ovirt_placement.answers.group_changes import judge
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance, maintenance_text
from ovirt_placement.answers.proxy import FILTERS, LoggedDecision
from ovirt_placement.answers.question import SOME_HOSTS, ConfiguredState
from ovirt_placement.engine.events import EngineEvent, EventCode, LatestEvents
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import with_names
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.solver import contradictions
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.filters import (
    HOST_NOT_LISTED,
    NEGATIVE_PEER_HERE,
    POSITIVE_PEER_ELSEWHERE,
)
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_BY_VM
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, sentence
from ovirt_placement_web.api import addresses
from ovirt_service.errors import UserError
from ovirt_simulator.generate import Sizes, generate
from tests.builders import APART, CLUSTER, TOGETHER, group, host, label, pending, rule, snapshot, vm

# -- What contradicts what is found again only when something has changed that it hangs on.
STATE = snapshot(
    host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("apart", APART, "a b"),
    rule("off", "exclusive_hosts", "x", hosts="h2"),
)  # fmt: skip
CLASH = "affinity group apart, placement rule off cannot be satisfied together"


@pytest.fixture
def judgements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that the solver is asked."""
    asked: list[str] = []
    judge = contradictions.judge

    def counted(state: Snapshot, cluster: str, *rest: object) -> object:
        asked.append(cluster)
        return judge(state, cluster, *rest)

    monkeypatch.setattr(contradictions, "judge", counted)
    return asked


def found(state: Snapshot) -> list[str]:
    return [conflicts.sentence(one) for one in judge_rules(state, CLUSTER).contradictions]


def test_vms_that_move_and_hosts_that_fail_are_no_reason_to_ask_again(judgements: list[str]) -> None:
    state = replace(STATE, vms=(*STATE.vms, vm("only here")))
    assert found(state) == [CLASH]
    moved = tuple(replace(one, host="h1", status="up", usage_cpu_percent=90) for one in state.vms)
    down = tuple(replace(one, status="maintenance", free_mb=1, cpu_percent=99) for one in state.hosts)
    for changes in (
        {"vms": moved, "hosts": down, "draining_hosts": ("h1",)},
        {"pending": (pending("a", "h2"),)},
    ):
        assert found(replace(state, **changes)) == [CLASH]
    assert len(judgements) == 1


def test_another_rule_host_member_or_name_is(judgements: list[str]) -> None:
    pinned = tuple(replace(one, migratable=False, pinned_hosts=("h2",)) for one in STATE.vms)
    renamed = (replace(STATE.affinity_groups[0], name="far"),)
    for changes, clash in (
        ({}, [CLASH]),
        ({"hosts": (*STATE.hosts, host("h3"))}, []),
        ({"affinity_groups": renamed}, [CLASH.replace("group apart", "group far")]),
        ({"affinity_groups": ()}, []),
        ({"placement_rules": ()}, []),
        ({"vms": pinned, "affinity_groups": ()}, ["placement rule off cannot be satisfied"]),
        ({}, [CLASH]),
    ):
        assert found(replace(STATE, **changes)) == clash


# -- Conflicts among a thousand groups are found in about the time in which violations are.
def seconds(work: Callable[[], object]) -> float:
    """The least of three: what else the machine does only makes it slower."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(3))


def test_conflicts_and_the_check_of_a_changed_group() -> None:
    state = generate(Sizes(clusters=1, hosts=200, vms=3000, groups=600), 1)
    cluster, group = state.clusters[0].id, replace(state.affinity_groups[5], priority=9.0)
    usual = seconds(lambda: find_violations(replace(state), cluster))
    assert seconds(lambda: find_conflicts(replace(state), cluster)) < 5 * usual
    assert seconds(lambda: judge(replace(state), group)) < 20 * usual


# -- Sentences with names: every kind of reason has one, and ids without a name stand as they are.
NAMED = snapshot(
    host("h1", name="north"),
    vm("v1", name="web"),
    group("g1", TOGETHER, "v1", name="near"),
    label("l1", "v1"),
)


def kinds() -> list[ReasonKind]:
    """All that some rule declares."""
    names = [module.name for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return list(dict.fromkeys(value for value in values if isinstance(value, ReasonKind)))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: str(kind.name))
def test_every_kind_is_a_sentence_without_ids(kind: ReasonKind) -> None:
    text = sentence(Reason(kind, "g1", "v1", "h1", 1.5), NAMED)
    assert text
    assert not {"{", "}", "v1", "h1", "g1"} & set(text.replace(",", " ").replace(":", " ").split())


def test_ids_without_a_name_a_legacy_label_and_the_vm_of_a_negative_group_are_named() -> None:
    unknown = Reason(NEGATIVE_PEER_HERE, "g9", "v9", "h9")
    here = "must not run with VM v9, which is on host h9 (affinity group g9)"
    assert sentence(unknown, NAMED) == here
    only = "VM web may only run on the hosts of affinity label l1"
    assert sentence(Reason(HOST_NOT_LISTED, "l1", "v1"), NAMED) == only
    violated = Reason(GROUP_VIOLATED_BY_VM, "g1", "v1", number=2.0)
    assert sentence(violated, NAMED) == "violates affinity group near of priority 2: VM web is here"


# -- What questions declare: words that name something, and addresses of the API.
TWO_HOSTS = snapshot(host("h1", name="north"), host("h2", name="south"))


def test_a_word_has_several_names_each_once() -> None:
    assert [one.id for one in SOME_HOSTS.find("south, h1,h2", TWO_HOSTS, {})] == ["h2", "h1"]
    with pytest.raises(UserError, match=r'^no host "nort"; did you mean "north"\?$'):
        SOME_HOSTS.find("h1,nort", TWO_HOSTS, {})


def test_each_address_is_declared_once_and_needs_what_it_takes() -> None:
    found = addresses()
    assert len({one.route.path for one in found}) == len(found)
    for one in found:
        assert set(one.route.required) <= one.keys.keys(), one.route.path


# -- What a plan of a maintenance says of what somebody may relax.
ONE_LEAVES = snapshot(host("alpha"), host("beta"), vm("Db", "alpha"))


def test_who_is_held_may_be_waited_for_and_need_not_be_stopped() -> None:
    options = MaintenanceOptions(frozen={"Db": "it came to alpha less than 120 s ago"})
    plan = plan_maintenance(ONE_LEAVES, ["alpha"], options, Deadline.after(30))
    assert [*maintenance_text(with_names(ClusterMaintenance, plan, ONE_LEAVES))][-3:] == [
        "  No round for alpha:",
        "    - Db stays where it is: it came to alpha less than 120 s ago",
        "  Once Db may be migrated, or with --stop Db, there is a round for alpha as well.",
    ]


# -- Moments as administrators write them: of today, of the night in which clocks are set.
VIENNA = ZoneInfo("Europe/Vienna")
#: A Wednesday.
NOW = datetime(2026, 11, 25, 9, 30, tzinfo=VIENNA).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("02:13", "2026-11-25T02:13:00+01:00"),
        ("2:13", "2026-11-25T02:13:00+01:00"),
        ("22:13:05", "2026-11-24T22:13:05+01:00"),
        ("yesterday 02:13", "2026-11-24T02:13:00+01:00"),
        ("Today 02:13", "2026-11-25T02:13:00+01:00"),
        ("2026-07-01 02:13", "2026-07-01T02:13:00+02:00"),
        ("2026-07-01T02:13:07", "2026-07-01T02:13:07+02:00"),
        ("2026-07-01 02:13:07+00:00", "2026-07-01T02:13:07+00:00"),
        ("2026-07-01t02:13:07z", "2026-07-01T02:13:07+00:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
    ],
)
def test_what_is_meant(text: str, meant: str) -> None:
    assert read_moment(text, NOW, VIENNA) == datetime.fromisoformat(meant).timestamp()


@pytest.mark.parametrize("text", ["", "25:00", "02:61", "soon", "monday 02:13", "2026-13-01", "02"])
def test_what_is_none_is_refused_with_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="write 02:13, yesterday 02:13"):
        read_moment(text, NOW, VIENNA)


@pytest.fixture
def vienna_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Vienna")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("vienna_here")
def test_this_machines_zone_is_read_as_any_other() -> None:
    for text in ("02:13", "22:13", "2026-10-25 02:13", "2026-03-29 02:13", "2026-07-01 02:13"):
        assert read_moment(text, NOW) == read_moment(text, NOW, VIENNA)


@given(st.integers(0, 86_399), st.integers(1_700_000_000, 1_900_000_000))
def test_a_time_of_day_is_the_last_one_that_has_come(second: int, now: int) -> None:
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    found = read_moment(clock, now, VIENNA)
    assert now - 25 * 3600 < found <= now
    shown = datetime.fromtimestamp(found, VIENNA).strftime("%H:%M:%S")
    # Clocks pass over some times once a year, and show some twice.
    assert shown == clock or abs(int(shown[:2]) - int(clock[:2])) == 1
    later = (datetime.fromtimestamp(found + more, VIENNA) for more in (3600, 86_400 - 3600, 86_400, 90_000))
    assert not any(one.strftime("%H:%M:%S") == clock and one.timestamp() <= now for one in later)


@pytest.mark.parametrize(
    ("text", "now", "meant"),
    [
        ("02:30", "2026-10-25T02:10:00+01:00", "2026-10-25T02:30:00+02:00"),
        ("02:30", "2026-10-25T02:40:00+01:00", "2026-10-25T02:30:00+01:00"),
        ("02:30", "2026-10-25T02:40:00+02:00", "2026-10-25T02:30:00+02:00"),
        ("02:30", "2026-03-29T03:10:00+02:00", "2026-03-29T01:30:00+01:00"),
    ],
)
def test_in_the_night_in_which_clocks_are_set(text: str, now: str, meant: str) -> None:
    moment, wanted = (datetime.fromisoformat(one).timestamp() for one in (now, meant))
    assert read_moment(text, moment, VIENNA) == wanted


def test_an_event_stands_with_the_refusal_that_is_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts within seconds, for different reasons: each has its own event."""
    refused = [
        LoggedDecision(
            NOW + after, str(after), FILTERS, ("h1",), {"h1": (unit,)}, {}, None, {}, seconds=0.0, vm="a"
        )
        for after, unit in ((0, "One"), (6, "Other"))
    ]
    record = tmp_path / "decisions.jsonl"
    record.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in refused))
    events = tuple(
        EngineEvent(
            id=number, code=EventCode.USER_FAILED_RUN_VM, severity="error", time=NOW + after,
            description=f"event {number}", correlation_id=None, vm="a", host=None, cluster=None,
        )
        for number, after in ((1, 1), (2, 7), (3, 30))
    )  # fmt: skip
    monkeypatch.setattr(at_time, "refusals", lambda state: (LatestEvents(events, None), None))
    state = ConfiguredState(snapshot(host("h1"), vm("a")), pytest.fail)
    found = why_now_or_then(state, refused=True, since=NOW - 1, decisions=record)
    assert isinstance(found, RefusedPlacementsDocument)
    said = [[event.sentence for event in one.events] for one in found.refused]
    assert said == [["event 1"], ["event 2"], ["event 3"]]


def test_a_migration_that_began_and_failed_was_refused_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown where a moment is asked about, as what happened then."""
    both = tuple(
        EngineEvent(
            id=number, code=code, severity="error", time=NOW + number, description=code.name,
            correlation_id=None, vm="a", host=None, cluster=None,
        )
        for number, code in enumerate(
            (EventCode.VM_MIGRATION_NO_VDS_TO_MIGRATE_TO, EventCode.VM_MIGRATION_TO_SERVER_FAILED)
        )
    )  # fmt: skip
    known = LatestEvents(both, None)
    monkeypatch.setattr(at_time, "refusals", lambda state: (known, None))
    state = ConfiguredState(snapshot(host("h1"), vm("a")), pytest.fail)
    found = why_now_or_then(state, refused=True, since=NOW - 1, decisions=Path("/nowhere"))
    assert isinstance(found, RefusedPlacementsDocument)
    assert [[event.sentence for event in one.events] for one in found.refused] == [[both[0].description]]
    (asked,) = state.snapshot.vms
    record = Path("/dev/null")
    there = at_time.decisions_at(state.snapshot, asked, record, NOW, known)
    assert [event.sentence for event in there.events] == [one.description for one in both]
    later = at_time.decisions_at(state.snapshot, asked, record, NOW + 3600.0, known)
    assert later.earlier is not None
    assert later.earlier.engine.sentence == both[0].description


@pytest.mark.parametrize(("joined", "kinds"), [("c", ["relax", "relax", "move"]), ("b", ["relax", "relax"])])
def test_a_vm_that_another_must_join_is_not_to_run_elsewhere(joined: str, kinds: list[str]) -> None:
    """Two groups contradict each other: with its peer gone the host is refused for the other one."""

    def dropped(name: str, kind: ReasonKind, peer: str) -> HostInDecision:
        reason = PastReason("AffinityFilter", kind.name, Named(kind.name, kind.name), Named(peer, peer), "")
        return HostInDecision(Named(name, name), ("AffinityFilter",), (reason,), {})

    hosts = dropped("h1", NEGATIVE_PEER_HERE, "b"), dropped("h2", POSITIVE_PEER_ELSEWHERE, joined)
    assert sorted(way.kind for way in remedies(hosts)) == sorted(kinds)


# -- What the engine says of hosts that its filters refused: it may name one of them for all.
_BEGINS = (
    "Failed to run VM q3: [Cannot run VM. There is no host that satisfies current scheduling constraints."
    " See below for details:"
)
_AFFINITY = (
    "The host {} did not satisfy internal filter VmToHostsAffinityGroups because it did not match positive"
    " affinity rules ."
)
_OTHER = "The host {} did not satisfy internal filter VmAffinityGroups because it matched negative rules ."


def said(*parts: str) -> EngineSaid:
    return EngineSaid("2026-11-28T07:00:00Z", 54, True, ", ".join((_BEGINS, *parts)) + "]")


def test_what_is_said_of_one_is_shown_with_it() -> None:
    event = said(_AFFINITY.format("h1"), _OTHER.format("h2"))
    assert said_of_host([event], host("h2")) == _OTHER.format("h2")
    assert not names_one_for_all(event.sentence)
    assert said_of_host([said(_AFFINITY.format("h1.example.com"))], host("h1")) is None


def test_what_is_said_of_all_under_the_name_of_one_is_shown_with_none() -> None:
    """As an engine 4.5.8 said of six hosts, of which the named one was refused by another filter."""
    event = said(*[_AFFINITY.format("h4")] * 6)
    assert names_one_for_all(event.sentence)
    assert all(said_of_host([event], host(name)) is None for name in ("h1", "h4"))
    answer = DecisionsAtDocument(
        vm=Named("v1", "two words"), at="", before=None, after=None, record_begins=None, events=(event,),
        earlier=None, events_error=None, events_since=None,
    )  # fmt: skip
    lines = at_time_text(answer, "record", snapshot(vm("v1", name="two words")), whole=True)
    assert "ovirt-placement why v1" in " ".join(map(str, lines))
