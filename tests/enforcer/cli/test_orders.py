"""`approve`, `refuse` and `undo`, by the id of a plan; `pause` and `resume`, with and without the engine."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, Pause, PauseStore
from ovirt_placement.store.user_actions import UserActionStore
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask, Said
from tests.enforcer.stand_ins import lead
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
from tests.stored import prepared

#: A pair that a plan has brought together, and a VM that made room and that nothing keeps where it is.
STATE = snapshot(
    cluster(name="blue"),
    cluster("c2", name="red"),
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("v1", "h2", name="web1"),
    vm("v2", "h2", name="web2"),
    vm("v3", "h1", name="calm"),
    group("g1", TOGETHER, "v1 v2", name="web"),
)
MOVES = (ApprovedMove(("a",), ("h1",), "h2"),)
PLANNED = "Cluster blue: 1 migration.\n"
NOT_YET = "It is not carried out yet: "
OBSERVES = (
    f'{NOT_YET}ovirt-enforcer is in observe mode: set mode = "approve" in [enforcer], and restart it.\n'
)
NONE_RUNS = f"{NOT_YET}no enforcer runs for engine default: start it with ovirt-enforcer run.\n"
NONE_WAITS = Said(2, "", "ovirt-enforcer: plan p1 does not wait, or not any more; none does\n")


@pytest.fixture
def store(opening: Opening) -> ApprovalStore:
    return opening(ApprovalStore)


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A configuration for an engine that does not answer."""
    return written(tmp_path, "approval_hours = 8")


def written(folder: Path, line: str) -> Path:
    return write_configuration(folder, "http://127.0.0.1:1/ovirt-engine/api", more=f"[enforcer]\n{line}")


def test_what_waits_is_listed(ask: Ask, away: Path, store: ApprovalStore) -> None:
    assert ask("approve --list") == Said(0, "No plan waits.\n")
    assert not away.with_name("store.db").exists()
    store.offer("c1", "p1", MOVES, f"{PLANNED}  1. a from h1 to h2")
    assert ask("approve --list") == Said(0, f"Plan p1\n{PLANNED}  1. a from h1 to h2\n")
    (found,) = ask("approve --list --json").document("WaitingPlans")
    assert (found["cluster"], found["plan"], found["moves"]) == ("c1", "p1", [[["a"], ["h1"], "h2"]])


@pytest.mark.parametrize(
    ("line", "leads", "hours", "not_yet"),
    [
        ("approval_hours = 8", None, 8, OBSERVES),
        ('mode = "approve"', None, 24, NONE_RUNS),
        ("approval_hours = 8", EnforcerSettings(mode=Mode.APPROVE, approval_hours=3), 3, ""),
    ],
    ids=["it would observe", "none runs", "the leader's hours"],
)
def test_a_plan_is_approved_of(
    ask: Ask,
    store: ApprovalStore,
    tmp_path: Path,
    line: str,
    leads: EnforcerSettings | None,
    hours: int,
    not_yet: str,
) -> None:
    written(tmp_path, line)
    if leads is not None:
        lead(tmp_path, leads)
    store.offer("c1", "p1", MOVES, PLANNED.strip())
    lasts = f"Approved of, for {hours} h, or until the cluster needs another plan.\n"
    assert ask("approve p1") == Said(0, f"{PLANNED}{lasts}{not_yet}")
    assert [one.plan for one in store.approvals()] == ["p1"]


def test_what_is_paused_and_how_long_a_refusal_lasts_is_said(
    ask: Ask, away: Path, store: ApprovalStore
) -> None:
    lead(away.parent, EnforcerSettings(mode=Mode.APPROVE, approval_hours=3))
    store.offer("c1", "p2", MOVES, PLANNED)
    assert ask("pause --reason backup").status == 0
    last = ask("approve p2").out.splitlines()[-1]
    assert re.fullmatch(rf"{NOT_YET}\S+ paused everything at .* \(backup\)\.", last)
    store.offer("c1", "p3", MOVES, PLANNED)
    assert "not offered again for 3 h," in ask("refuse p3").out


def test_a_plan_that_does_not_wait_is_a_mistake(ask: Ask, away: Path, store: ApprovalStore) -> None:
    assert ask("approve p1") == ask("refuse p1") == NONE_WAITS
    store.offer("c1", "p2", MOVES, "")
    assert ask("approve p1") == NONE_WAITS._replace(err=NONE_WAITS.err.replace("none does", "these do: p2"))
    assert store.approvals() == ()


@pytest.mark.usefixtures("away")
def test_a_refused_plan_waits_no_more(ask: Ask, store: ApprovalStore, opening: Opening) -> None:
    store.offer("c1", "p1", MOVES, PLANNED.strip())
    refused = "Refused: it is not offered again for 8 h, unless the cluster needs another.\n"
    assert ask("refuse p1 --reason 'backup\ntonight'") == Said(0, f"{PLANNED}{refused}")
    assert store.waiting() == store.approvals() == ()
    (action,) = opening(UserActionStore).actions(since_seconds=600)
    assert (action.kind, action.plan, action.details) == ("refuse", "p1", ("backup\\ntonight",))
    assert ask("approve p1") == NONE_WAITS  # it has no approval to give any more


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("words", ["", "p1 --list"])
def test_one_of_a_plan_and_the_list_is_asked_for(ask: Ask, words: str) -> None:
    assert ask(f"approve {words}").status == 2


Did = Callable[..., None]


@pytest.fixture
def did(opening: Opening, url: str, file: Path) -> Did:
    """Remembers a plan whose migrations, written as `vm from to`, have succeeded an hour ago."""
    store, history = opening(Store), opening(HistoryStore)

    def remember(plan: str, *migrations: str) -> None:
        history.record_plan(plan, CLUSTER, {"steps": [{"vms": []}] * len(migrations), "remaining": []})
        for number, one in enumerate(migrations, 1):
            name, source, target = one.split()
            of: dict[str, Any] = {"cluster": CLUSTER, "source": source, "target": target, "plan": plan}
            intent = prepared(store, name, f"{plan}-{number}", step=number, **of)
            store.accept(intent.id)
            store.finish(intent.id)
        with database(url) as connection:
            connection.exec_driver_sql("UPDATE intents SET created=created-3600, updated=updated-3600")

    return remember


STAYS = "  web1 stays: it would violate affinity group web\n"


@pytest.mark.parametrize(
    ("migrations", "status", "text"),
    [
        (["v3 h2 h1"], 3, "Cluster blue: 1 migration to undo plan abc\n  1. calm from alpha to beta"),
        (["v1 h1 h2", "v3 h2 h1"], 4, f"\n{STAYS}"),
        (["v1 h1 h2"], 4, f"Cluster blue: nothing of plan abc can be undone now\n{STAYS}"),
        (["v3 h1 h1"], 0, "Nothing is left to undo: the VMs of plan abc are where they were before it.\n"),
        ([], 0, "Nothing can be undone yet: plan abc has moved no VM.\n"),
    ],
    ids=["all of it", "a part", "nothing of it", "nothing is left", "nothing was moved yet"],
)
def test_what_would_undo_a_plan(ask: Ask, did: Did, migrations: list[str], status: int, text: str) -> None:
    did("abc", *migrations)
    found = ask("undo ab")
    assert (found.status, text in found.out) == (status, True)
    assert ("calm from alpha to beta" in found.out) is ("v3 h2 h1" in migrations)


def test_a_vm_that_was_moved_twice_goes_back_to_where_it_began(ask: Ask, did: Did) -> None:
    did("abc", "v3 h2 h9", "v3 h9 h1")
    found = ask("undo abc --json")
    document = found.document("PlansBack")
    ((step,),) = (cluster["steps"] for cluster in document["clusters"])
    assert (step["vms"][0]["name"], step["from"]["name"], step["to"]["name"]) == ("calm", "alpha", "beta")
    assert (document["undoes"], document["kept"], found.status) == ("abc", [], 3)


@pytest.mark.parametrize(
    ("plan", "mistake"), [("ab", 'plan "ab" is ambiguous: say abc or abd'), ("x", 'no plan "x" is recorded')]
)
def test_a_plan_that_is_not_known_or_ambiguous_is_a_mistake(
    ask: Ask, did: Did, plan: str, mistake: str
) -> None:
    did("abc")
    did("abd")
    status, _, err = ask(f"undo {plan}")
    assert (status, mistake in err) == (2, True)


def stored(opening: Opening) -> tuple[Pause, ...]:
    return opening(PauseStore).pauses()


@pytest.mark.parametrize("hours", ["8e7", "1e300", "inf", "nan", "-1", "0", "87601", "soon"])
def test_no_pause_ends_when_no_calendar_has_a_day_for_it(ask: Ask, away: Path, hours: str) -> None:
    status, _, err = ask(f"pause --hours {hours}")
    assert (status, "hours greater than 0, and at most 87600" in err) == (2, True)
    assert not away.with_name("store.db").exists()


@pytest.mark.usefixtures("away")
def test_an_engine_that_is_away_keeps_nobody_from_pausing(ask: Ask, opening: Opening) -> None:
    status, out, err = ask("pause --cluster blue")
    assert err.startswith('"blue" is taken for the name or id of a cluster: ')
    assert (status, out.startswith("Paused in cluster blue")) == (0, True)
    assert [pause.cluster for pause in stored(opening)] == ["blue"]
    assert "Resumed in cluster blue" in ask("resume --cluster blue").out


def test_that_nothing_is_paused_is_said_without_a_store(ask: Ask, away: Path) -> None:
    assert ask("pause --list").out == "Nothing is paused.\n"
    assert not away.with_name("store.db").exists()
