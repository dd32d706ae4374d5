"""Every command that changes something: its dry run writes nothing, and says what a real run then does."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.store import backup
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.observations import (
    LostMembership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
)
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, PauseStore
from ovirt_placement.store.sql.database import Database, StoreLost, StoreUnmade
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.docs.shown import PARSERS, subcommands
from tests.placement.cli.documents import parsed
from tests.placement.cli.live_engine import LiveEngine, Starting


@dataclass
class Stage:
    """An engine, a store, and a folder for files."""

    live: LiveEngine
    folder: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    def run(self, *words: str) -> tuple[int, str, str]:
        command, *arguments = words
        if command == "ovirt-placement":
            return self.live.outcome(*arguments)
        self.live.capsys.readouterr()
        status = enforcer([*arguments, "--config", str(self.live.config)])
        printed = self.live.capsys.readouterr()
        return status, printed.out, printed.err

    def prepared(self, *words: str) -> str:
        status, out, err = self.run(*words)
        assert status in (0, 3), out + err
        return out

    def file(self, name: str, content: str) -> str:
        path = self.folder / name
        path.write_text(content)
        return str(path)

    def store(self) -> object:
        """All that the store holds; None where there is none."""
        database = Database(self.url, patience_seconds=5, create=False)
        copy = self.folder / "copy"
        copy.unlink(missing_ok=True)
        try:
            backup.write(database, copy)
        except (StoreUnmade, StoreLost):
            return None
        finally:
            database.close()
        return json.loads(copy.read_text())


# -- Every command that changes something: its dry run writes nothing, and says what a real run then does.
STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    vm("v1", "h1", name="web1", cluster="c1"),
    vm("v2", "h1", name="web2", cluster="c1"),
    group("g1", APART, "v1 v2", cluster="c1", name="apart"),
)
ENFORCER = '[enforcer]\nmode = "enforce"\n'

#: What differs from run to run: moments, and ids that are given then.
_OF_THE_RUN = {"id", "set_at", "until", "requested_at", "phase_seconds"}

#: The commands that change nothing, or run until they are stopped.
QUESTIONS = {
    "ovirt-placement snapshot", "ovirt-placement status", "ovirt-placement why", "ovirt-placement where",
    "ovirt-placement violations", "ovirt-placement conflicts", "ovirt-placement ha-check",
    "ovirt-placement what-if", "ovirt-placement doctor", "ovirt-placement keys list",
    "ovirt-placement keys check", "ovirt-placement keys show", "ovirt-placement keys explain",
    "ovirt-placement keys export", "ovirt-placement groups list", "ovirt-placement groups export",
    "ovirt-placement rules list", "ovirt-placement rules show", "ovirt-placement rules check",
    "ovirt-placement rules export",
    # It writes a file that the caller names, and nothing else.
    "ovirt-placement store backup",
    "ovirt-enforcer status", "ovirt-enforcer plan", "ovirt-enforcer simulate-policy",
    "ovirt-enforcer make-room", "ovirt-enforcer history", "ovirt-enforcer why-not", "ovirt-enforcer undo",
    "ovirt-enforcer maintenance plan", "ovirt-enforcer maintenance status",
    "ovirt-scheduler-proxy check", "ovirt-scheduler-proxy call discover",
    "ovirt-scheduler-proxy call runFilters", "ovirt-scheduler-proxy call runCostFunctions",
    "ovirt-scheduler-proxy call runLoadBalancing",
    "ovirt-placement inventory run", "ovirt-enforcer run", "ovirt-scheduler-proxy run",
    "ovirt-placement-web run",
    # The simulator is no part of what is installed on an engine's machine.
    "ovirt-simulator run", "ovirt-simulator generate",
}  # fmt: skip


def _leading(stage: Stage) -> None:
    """An enforcer that leads, so that orders are accepted."""
    with closing(LeaseStore(stage.url, engine="default", patience_seconds=5)) as leases:
        assert leases.take_lease("test", 600) is not None


def _plan(stage: Stage) -> str:
    _leading(stage)
    return stage.file("plan.json", stage.prepared("ovirt-enforcer", "plan", "--strategy", "greedy", "--json"))


def _offered(stage: Stage) -> None:
    with closing(ApprovalStore(stage.url, engine="default", patience_seconds=5)) as store:
        store.offer("c1", "p1", (ApprovedMove(("v1",), ("h1",), "h2"),), "Cluster blue: 1 migration.")


def _lost(stage: Stage) -> None:
    one = LostMembership(
        vm="v1", vm_name="web1", cluster="c0", cluster_name="red", kind=MembershipKind.GROUP, id="g0",
        name="far", since=0.0,
    )  # fmt: skip
    with closing(MembershipStore(stage.url, engine="default", patience_seconds=5)) as store:
        store.change(MembershipChange(lost=(one,)))


def _paused(stage: Stage) -> None:
    stage.prepared("ovirt-enforcer", "pause")


def _run_requested(stage: Stage) -> None:
    _leading(stage)
    stage.prepared("ovirt-enforcer", "maintenance", "run", "south", "--in-order")


def _run_paused(stage: Stage) -> None:
    _run_requested(stage)
    stage.prepared("ovirt-enforcer", "maintenance", "pause")


def _backup(stage: Stage) -> None:
    with closing(PauseStore(stage.url, engine="default", patience_seconds=5)) as store:
        store.pauses()
    stage.prepared("ovirt-placement", "keys", "set", "rack", "1", "2", "--on", "vm", "web1")
    stage.prepared("ovirt-placement", "store", "backup", str(stage.folder / "backup"))
    stage.prepared("ovirt-placement", "keys", "set", "rack", "1", "2", "--on", "vm", "web2")


def _gone(stage: Stage) -> None:
    """A store that was there, and is no more."""
    with closing(PauseStore(stage.url, engine="default", patience_seconds=5)) as store:
        store.pauses()
    for file in stage.folder.glob("store.db*"):
        file.unlink()


@dataclass(frozen=True)
class Case:
    """A command with its arguments, which may name files that `before` has written as {file}."""

    command: str
    arguments: tuple[str, ...]
    #: What is there before; it may give the path of a file.
    before: Callable[[Stage], str | None] = field(default=lambda stage: None)
    #: Whether a second run says that nothing is another; else it does it again, or is refused.
    declarative: bool = False


def keys_file(stage: Stage) -> str:
    key = "{level: server, resource: web1, name: rack, value: 1, weight: 2}"
    return stage.file("keys.yaml", f"format: 1\nkeys: [{key}]\n")


def groups_file(stage: Stage) -> str:
    group = "{name: near, cluster: blue, vms_rule: positive, vms: [web1], description: both}"
    return stage.file("groups.yaml", f"groups: [{group}]\n")


def rules_file(stage: Stage) -> str:
    rule = "{name: few, kind: at_most_per_host, cluster: blue, vms: [web1], most: 1}"
    return stage.file("rules.yaml", f"rules: [{rule}]\n")


def _with_rule(stage: Stage) -> None:
    stage.prepared("ovirt-placement", "rules", "import", rules_file(stage))


def _with_key(stage: Stage) -> None:
    stage.prepared("ovirt-placement", "keys", "import", keys_file(stage))


def _with_key_of_a_vm_that_is_gone(stage: Stage) -> None:
    _with_key(stage)
    vm_now = stage.live.engine.queries.state.vms["v1"]
    stage.live.engine.vms.stop(vm_now.id)
    stage.live.engine.advance(60)
    stage.live.engine.vms.remove(vm_now.id)


RULE = ("few", "--kind", "at_most_per_host", "--cluster", "blue", "--vms", "web1", "--most", "1")
CASES = (
    Case("ovirt-placement keys define", ("rack", "--cluster", "blue", "--default", "1"), declarative=True),
    Case("ovirt-placement keys set", ("rack", "1", "2", "--on", "vm", "web1"), declarative=True),
    Case("ovirt-placement keys unset", ("rack", "--on", "vm", "web1"), _with_key),
    Case("ovirt-placement keys import", ("{file}", "--replace"), keys_file, declarative=True),
    Case("ovirt-placement keys prune", (), _with_key_of_a_vm_that_is_gone, declarative=True),
    Case("ovirt-placement groups add", ("near", "--cluster", "blue", "--vm", "web1", "--description", "x")),
    Case("ovirt-placement groups edit", ("apart", "--priority", "2", "--description", "x"), declarative=True),
    Case("ovirt-placement groups remove", ("apart",)),
    Case("ovirt-placement groups import", ("{file}",), groups_file, declarative=True),
    Case("ovirt-placement groups apply", ("{file}",), groups_file, declarative=True),
    Case("ovirt-placement groups lost", ("--forget", "web1"), _lost),
    Case("ovirt-placement rules add", RULE),
    Case("ovirt-placement rules edit", ("few", "--most", "2"), _with_rule, declarative=True),
    Case("ovirt-placement rules remove", ("few",), _with_rule),
    Case("ovirt-placement rules import", ("{file}",), rules_file, declarative=True),
    Case("ovirt-placement rules apply", ("{file}",), rules_file, declarative=True),
    Case(
        "ovirt-placement setup",
        ("--cluster", "blue", "--property", "ha_weight_scale_down=5"),
        declarative=True,
    ),
    Case("ovirt-placement store init", (), _gone, declarative=True),
    Case("ovirt-placement store restore", ("{folder}/backup", "--replace"), _backup),
    Case("ovirt-enforcer pause", ("--cluster", "blue", "--reason", "storage")),
    Case("ovirt-enforcer resume", (), _paused, declarative=True),
    Case("ovirt-enforcer approve", ("p1",), _offered),
    Case("ovirt-enforcer refuse", ("p1",), _offered),
    Case("ovirt-enforcer apply", ("{file}", "--yes"), _plan),
    Case("ovirt-enforcer maintenance run", ("south", "--in-order"), _leading),
    Case("ovirt-enforcer maintenance pause", (), _run_requested),
    Case("ovirt-enforcer maintenance resume", (), _run_paused),
    Case("ovirt-enforcer maintenance stop", (), _run_requested),
)


def leaves() -> Iterator[argparse.ArgumentParser]:
    for parser in PARSERS.values():
        yield from subcommands(parser)


def test_every_command_is_known_to_change_something_or_not() -> None:
    changing = {one.prog for one in leaves() if one.get_default("changes")}
    assert changing == {case.command for case in CASES}
    assert {one.prog for one in leaves()} - changing == QUESTIONS


@pytest.mark.parametrize("case", CASES, ids=[case.command for case in CASES])
def test_a_dry_run_writes_nothing_and_says_what_is_done_then(
    case: Case, starting: Starting, tmp_path: Path
) -> None:
    with starting(STATE, more=ENFORCER) as live:
        stage = Stage(live, tmp_path)
        file = case.before(stage)
        words = [*case.command.split(), *(one.format(file=file, folder=tmp_path) for one in case.arguments)]
        live.changes.clear()
        was = stage.store()

        said = answer(stage, *words, "--dry-run", "--json")
        assert (live.changes, stage.store()) == ([], was), "a dry run writes nothing"
        assert (said["changed"], said["dry_run"]) == (True, True)
        status, out, err = stage.run(*words, "--dry-run")
        assert (status, live.changes, stage.store()) == (0, [], was), out + err

        done = answer(stage, *words, "--json")
        assert live.changes or stage.store() != was
        assert (done["changed"], done["dry_run"]) == (True, False)
        assert done["before"] != done["after"]
        assert plain(done["before"]) == plain(said["before"])
        assert plain(done["after"]) == plain(said["after"])

        if case.declarative:
            live.changes.clear()
            again = answer(stage, *words, "--json")
            assert (again["changed"], live.changes) == (False, [])
            assert again["before"] == again["after"]


def test_a_backup_and_its_restoration_are_of_as_many_rows_as_the_dry_run(
    starting: Starting, tmp_path: Path
) -> None:
    file = str(tmp_path / "backup")
    with starting(STATE) as live:
        stage = Stage(live, tmp_path)
        stage.prepared("ovirt-placement", "keys", "set", "rack", "1", "2", "--on", "vm", "web1")
        rows = stage.prepared("ovirt-placement", "store", "backup", file).removeprefix(f"{file}: ").strip()
        restoration = ("ovirt-placement", "store", "restore", file, "--replace")
        said = [stage.prepared(*restoration, *dry).strip() for dry in (("--dry-run",), ())]
    assert said == [f"store {stage.url}: {rows} {done}" for done in ("would be restored", "restored")]


def answer(stage: Stage, *words: str) -> Any:
    status, out, err = stage.run(*words)
    assert status == 0, out + err
    return parsed(out)


def plain(found: Any) -> Any:
    """What was said, but for what differs from run to run."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items() if key not in _OF_THE_RUN}
    return [plain(one) for one in found] if isinstance(found, list) else found
