"""`approve` and `refuse`: one plan that waits, by its id, and what waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.leading import lead
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
