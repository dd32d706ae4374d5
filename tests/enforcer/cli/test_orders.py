"""`approve`, `refuse` and `undo`, by the id of a plan; `pause` and `resume`, with and without the engine."""

import getpass
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, Pause, PauseStore
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.stand_ins import lead
from tests.placement.cli.documents import defined
from tests.placement.databases import database
from tests.scenarios.stage import START
from tests.stored import prepared

MOVES = (ApprovedMove(("a",), ("h1",), "h2"),)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_configuration(
        tmp_path, "http://127.0.0.1:1/ovirt-engine/api", more="[enforcer]\napproval_hours = 8"
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = ApprovalStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    yield opened
    opened.close()


def run(config: Path, *arguments: str) -> int:
    return main(["approve", *arguments, "--config", str(config)])


def test_what_waits_is_listed(
    config: Path, tmp_path: Path, store: ApprovalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "--list") == 0
    assert capsys.readouterr().out == "No plan waits.\n"
    assert not (tmp_path / "store.db").exists()
    store.offer("c1", "p1", MOVES, "Cluster blue: 1 migration.\n  1. a from h1 to h2")
    assert run(config, "--list") == 0
    assert capsys.readouterr().out == "Plan p1\nCluster blue: 1 migration.\n  1. a from h1 to h2\n"
    assert run(config, "--list", "--json") == 0
    (reported,) = defined(capsys.readouterr().out, "WaitingPlans")
    assert (reported["cluster"], reported["plan"], reported["moves"]) == ("c1", "p1", [[["a"], ["h1"], "h2"]])


def test_a_plan_is_approved_of(
    config: Path, store: ApprovalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.offer("c1", "p1", MOVES, "Cluster blue: 1 migration.")
    assert run(config, "p1") == 0
    assert capsys.readouterr().out == (
        "Cluster blue: 1 migration.\nApproved of, for 8 h, or until the cluster needs another plan.\n"
        "It is not carried out yet: ovirt-enforcer is in observe mode:"
        ' set mode = "approve" in [enforcer], and restart it.\n'
    )
    assert [one.plan for one in store.approvals()] == ["p1"]


def test_what_lasts_goes_by_the_enforcer_that_leads(
    config: Path, tmp_path: Path, store: ApprovalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    lead(tmp_path, EnforcerSettings(mode=Mode.APPROVE, approval_hours=3))
    store.offer("c1", "p1", MOVES, "Cluster blue: 1 migration.")
    assert run(config, "p1") == 0
    assert capsys.readouterr().out == (
        "Cluster blue: 1 migration.\nApproved of, for 3 h, or until the cluster needs another plan.\n"
    )
    store.offer("c1", "p2", MOVES, "Cluster blue: 1 migration.")
    assert main(["pause", "--reason", "backup", "--config", str(config)]) == 0
    capsys.readouterr()
    assert run(config, "p2") == 0
    assert re.fullmatch(
        r"It is not carried out yet: \S+ paused everything at .* \(backup\)\.",
        capsys.readouterr().out.splitlines()[-1],
    )
    store.offer("c1", "p3", MOVES, "Cluster blue: 1 migration.")
    assert main(["refuse", "p3", "--config", str(config)]) == 0
    assert "not offered again for 3 h," in capsys.readouterr().out


def test_a_plan_that_nobody_carries_out_says_so(
    tmp_path: Path, store: ApprovalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_configuration(
        tmp_path, "http://127.0.0.1:1/ovirt-engine/api", more='[enforcer]\nmode = "approve"'
    )
    store.offer("c1", "p1", MOVES, "Cluster blue: 1 migration.")
    assert run(config, "p1") == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "It is not carried out yet: no enforcer runs for engine default: start it with ovirt-enforcer run."
    )


def test_a_plan_that_does_not_wait_is_a_mistake(
    config: Path, store: ApprovalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "p1") == 2
    assert capsys.readouterr().err == "ovirt-enforcer: plan p1 does not wait, or not any more; none does\n"
    store.offer("c1", "p2", MOVES, "")
    assert run(config, "p1") == 2
    assert capsys.readouterr().err == (
        "ovirt-enforcer: plan p1 does not wait, or not any more; these do: p2\n"
    )
    assert store.approvals() == ()


def test_a_refused_plan_waits_no_more_and_is_not_offered_again(
    config: Path, store: ApprovalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: str) -> int:
        return main(["refuse", *arguments, "--config", str(config)])

    assert refuse("p1") == 2
    assert capsys.readouterr().err == "ovirt-enforcer: plan p1 does not wait, or not any more; none does\n"
    store.offer("c1", "p1", MOVES, "Cluster blue: 1 migration.")
    assert refuse("p1", "--reason", "backup\ntonight") == 0
    assert capsys.readouterr().out == (
        "Cluster blue: 1 migration.\n"
        "Refused: it is not offered again for 8 h, unless the cluster needs another.\n"
    )
    assert store.waiting() == store.approvals() == ()
    assert not store.offer("c1", "p1", MOVES, "", refusal_seconds=3600)
    assert store.offer("c1", "p2", MOVES, "", refusal_seconds=3600)
    with closing(UserActionStore(f"sqlite:///{tmp_path}/store.db", engine="default")) as actions:
        (action,) = actions.actions(since_seconds=600)
    assert (action.kind, action.plan, action.details) == ("refuse", "p1", ("backup\\ntonight",))
    assert run(config, "p1") == 2  # it has no approval to give any more


def test_one_of_a_plan_and_the_list_is_asked_for(config: Path) -> None:
    for arguments in ((), ("p1", "--list")):
        with pytest.raises(SystemExit):
            run(config, *arguments)


#: A pair that a plan has brought together, and a VM that made room and that nothing keeps where it is.
STATE = snapshot(
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("v1", "h2", name="web1"),
    vm("v2", "h2", name="web2"),
    vm("v3", "h1", name="calm"),
    group("g1", TOGETHER, "v1 v2", name="web"),
)


class Bench:
    """What would undo a plan, as an administrator asks for it: a plan to look at, and to carry out."""

    def __init__(self, folder: Path, api_url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._url = f"sqlite:///{folder}/store.db"
        self._configuration = str(write_configuration(folder, api_url))
        self._capsys = capsys

    def did(self, plan: str, *migrations: str, steps: int = 1) -> None:
        """Remember a plan whose migrations, written as `vm from to`, have succeeded an hour ago."""
        history, store = (
            part(self._url, engine="default", patience_seconds=5) for part in (HistoryStore, Store)
        )
        assert isinstance(history, HistoryStore)
        assert isinstance(store, Store)
        history.record_plan(plan, CLUSTER, {"steps": [{"vms": []}] * steps, "remaining": []})
        for number, one in enumerate(migrations, 1):
            name, source, target = one.split()
            intent = prepared(
                store,
                vm=name,
                cluster=CLUSTER,
                source=source,
                target=target,
                correlation_id=f"{plan}-{number}",
                plan=plan,
                step=number,
            )
            store.accept(intent.id)
            store.finish(intent.id)
        history.close()
        store.close()
        with database(self._url) as connection:
            connection.exec_driver_sql(
                "UPDATE intents SET created = created - 3600, updated = updated - 3600"
            )

    def undo(self, *arguments: str) -> tuple[int, str]:
        status = main(["undo", *arguments, "--config", self._configuration])
        said = self._capsys.readouterr()
        return status, said.out or said.err


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bench]:
    server = serve(Engine.from_snapshot(STATE, clock=START))
    yield Bench(tmp_path, server.api_url, capsys)
    server.close()


def test_all_of_it(bench: Bench) -> None:
    bench.did("abc", "v3 h2 h1")
    status, text = bench.undo("ab")
    title, step = text.splitlines()
    assert title == f"Cluster {CLUSTER}: 1 migration to undo plan abc"
    assert step.startswith("  1. calm from alpha to beta")
    assert status == 3


def test_what_would_break_a_hard_rule_is_refused(bench: Bench) -> None:
    bench.did("abc", "v1 h1 h2", "v3 h2 h1", steps=2)
    status, text = bench.undo("abc")
    assert "calm from alpha to beta" in text
    assert "  web1 stays: it would violate affinity group web\n" in text
    assert status == 4


def test_a_vm_that_was_moved_twice_goes_back_to_where_it_began(bench: Bench) -> None:
    bench.did("abc", "v3 h2 h9", "v3 h9 h1", steps=2)
    status, text = bench.undo("abc", "--json")
    document = defined(text, "PlansBack")
    ((step,),) = (cluster["steps"] for cluster in document["clusters"])
    assert (step["vms"][0]["name"], step["from"]["name"], step["to"]["name"]) == ("calm", "alpha", "beta")
    assert (document["undoes"], document["kept"], status) == ("abc", [], 3)


def test_nothing_is_left_to_take_back(bench: Bench) -> None:
    bench.did("abc", "v3 h1 h1")
    said = "Nothing is left to undo: the VMs of plan abc are where they were before it.\n"
    assert bench.undo("abc") == (0, said)


def test_a_plan_that_has_moved_nothing_yet(bench: Bench) -> None:
    bench.did("abc")
    assert bench.undo("abc") == (0, "Nothing can be undone yet: no migration of plan abc has ended.\n")


def test_nothing_of_it_can_be_undone_and_why(bench: Bench) -> None:
    bench.did("abc", "v1 h1 h2")
    status, text = bench.undo("abc")
    assert text.splitlines() == [
        f"Cluster {CLUSTER}: nothing of plan abc can be undone now",
        "  web1 stays: it would violate affinity group web",
    ]
    assert status == 4


def test_a_plan_that_is_not_known_or_ambiguous_is_a_mistake(bench: Bench) -> None:
    bench.did("abc")
    bench.did("abd")
    status, text = bench.undo("x")
    assert (status, 'no plan "x" is recorded' in text) == (2, True)
    status, text = bench.undo("ab")
    assert (status, 'plan "ab" is ambiguous: say abc or abd' in text) == (2, True)


CLUSTERS = snapshot(cluster("c1", name="blue"), cluster("c2", name="red"), host("h1", cluster="c1"))
Say = Callable[..., str]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """A configuration for an engine that answers."""
    server = serve(Engine.from_snapshot(CLUSTERS, clock=START))
    yield write_configuration(tmp_path, server.api_url)
    server.close()


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A configuration for an engine that does not."""
    return write_configuration(tmp_path, "http://127.0.0.1:1/ovirt-engine/api")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(config: Path, *arguments: str, status: int = 0) -> str:
        """What a command prints, times left out."""
        assert main([*arguments, "--config", str(config)]) == status
        out, err = capsys.readouterr()
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d\+00:00", "TIME", out + err)

    return run


def stored(folder: Path) -> tuple[Pause, ...]:
    store = PauseStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=5)
    try:
        return store.pauses()
    finally:
        store.close()


@pytest.mark.parametrize("hours", ["8e7", "1e300", "inf", "nan", "-1", "0", "87601", "soon"])
def test_no_pause_ends_when_no_calendar_has_a_day_for_it(
    away: Path, tmp_path: Path, hours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["pause", "--hours", hours, "--config", str(away)])
    assert "hours greater than 0, and at most 87600" in capsys.readouterr().err
    assert not (tmp_path / "store.db").exists()


def test_everything_is_paused_and_resumed(live: Path, say: Say, tmp_path: Path) -> None:
    said = say(live, "pause", "--reason", "storage moves")
    assert said == (
        "Paused in all clusters, until ovirt-enforcer resume. What is under way already goes on.\n"
    )
    (pause,) = stored(tmp_path)
    assert (pause.cluster, pause.reason, pause.until) == ("", "storage moves", None)
    assert pause.set_by == getpass.getuser()
    assert say(live, "resume") == f"Resumed in all clusters: {pause.set_by} had paused it at TIME.\n"
    assert stored(tmp_path) == ()


@pytest.mark.parametrize("word", ["blue", "c1"])
def test_a_cluster_is_paused_for_a_while(live: Path, say: Say, tmp_path: Path, word: str) -> None:
    said = say(live, "pause", "--cluster", word, "--hours", "1.5")
    assert said == "Paused in cluster blue, for 1.5 h. What is under way already goes on.\n"
    (pause,) = stored(tmp_path)
    assert (pause.cluster, pause.cluster_name) == ("c1", "blue")
    assert pause.until == pytest.approx(pause.set_at + 5400, abs=1)
    assert "Resumed in cluster blue" in say(live, "resume", "--cluster", word)


def test_what_stays_paused_is_said(live: Path, say: Say) -> None:
    said = [say(live, "pause", *arguments) for arguments in (("--cluster", "blue"), ("--cluster", "red"), ())]
    assert "until ovirt-enforcer resume --cluster blue." in said[0]
    assert say(live, "resume").splitlines()[1:] == [
        "Still paused: cluster blue.",
        "Still paused: cluster red.",
    ]
    assert say(live, "resume").splitlines()[0] == (
        "No pause of all clusters was in force. The failure counter is reset."
    )


def test_a_cluster_that_is_not_there_is_a_mistake(live: Path, say: Say, tmp_path: Path) -> None:
    said = say(live, "pause", "--cluster", "bleu", status=2)
    assert said == 'ovirt-enforcer: no cluster "bleu"; did you mean "blue"?\n'
    assert not (tmp_path / "store.db").exists()


def test_an_engine_that_is_away_keeps_nobody_from_pausing(away: Path, say: Say, tmp_path: Path) -> None:
    warning, paused = sorted(say(away, "pause", "--cluster", "blue").splitlines())
    assert warning.startswith('"blue" is taken for the name or id of a cluster: ')
    assert paused.startswith("Paused in cluster blue")
    assert [pause.cluster for pause in stored(tmp_path)] == ["blue"]
    assert "Resumed in cluster blue" in say(away, "resume", "--cluster", "blue")


def test_a_list_says_what_is_paused(away: Path, say: Say, tmp_path: Path) -> None:
    assert say(away, "pause", "--list") == "Nothing is paused.\n"
    assert not (tmp_path / "store.db").exists()
    say(away, "pause", "--reason", "storage moves")
    say(away, "pause", "--cluster", "red", "--hours", "2")
    lines = say(away, "pause", "--list").splitlines()
    assert lines[0].split() == ["paused", "by", "since", "until", "reason"]
    user = getpass.getuser()
    assert lines[2].split("  ")[0] == "all clusters"
    assert lines[2].split() == ["all", "clusters", user, "TIME", "resume", "storage", "moves"]
    assert lines[3].split() == ["cluster", "red", user, "TIME", "TIME"]
    reported = defined(say(away, "pause", "--list", "--json"), "Pauses")
    assert [(one["cluster"], one["reason"]) for one in reported] == [("", "storage moves"), ("red", "")]
    now = defined(say(away, "pause", "--reason", "still", "--json"), "PausesChangeDocument")
    assert [(one["cluster"], one["reason"]) for one in now["after"]] == [("", "still"), ("red", "")]
