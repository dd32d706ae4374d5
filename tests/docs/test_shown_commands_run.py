"""Commands that pages show can be run as they stand there: each page is walked through on an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ovirt_placement.model.files import state_file
from tests.builders import cluster, host, snapshot, vm
from tests.docs.parsers import COMMANDS
from tests.docs.shown import PAGES, commands
from tests.docs.test_shown_commands import words
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import LiveEngine, live_engine

#: Everything that pages name.
STATE = snapshot(
    cluster("production", ha_reservation=True),
    *(cluster(name) for name in ("Default", "blue", "prod")),
    *(host(name, cluster="production") for name in ("node1", "node2", "node7")),
    host("host3", cluster="Default"),
    host("host4", cluster="Default"),
    *(host(name, cluster="prod") for name in ("alpha", "beta", "gamma")),
    vm("ora1", "node1", cluster="production", ha=True),
    vm("ora2", "node2", cluster="production"),
    vm("ora3", cluster="production"),
    vm("web1", "host3", cluster="Default"),
    *(vm(name, cluster="Default") for name in ("web2", "web3", "big")),
    vm("db-1", "host4", cluster="Default"),
    vm("db-3", cluster="Default"),
    host("node8", cluster="blue"),
    vm("db-2", cluster="blue", tags=("db",), ha=True),
    vm("web-4", cluster="blue", tags=("web",), ha=True),
)
DOMAINS = '[ha]\n[[ha.domains]]\nname = "rack-3"\nhosts = ["node1", "node2"]\n'

#: What stands for something of the reader's.
_PLACEHOLDER = re.compile(r"\b(FILE|NAME|GROUP|CLUSTER|VM|HOST)\b")
#: A command, and the file that its output goes into.
_LINE = re.compile(r"^\$ \.venv/bin/(ovirt-\S+ [^#>\n]*?)\s*(?:> (\S+))?\s*(?:#.*)?$", re.MULTILINE)
#: Commands that need more than an engine, and where they are tried.
ELSEWHERE = {
    "ovirt-placement setup": "the scheduler proxy's units: tests/placement/cli/setup",
    "ovirt-placement store": "a store that was lost: tests/placement/store",
    "ovirt-enforcer apply": "an enforcer that runs: tests/enforcer/service",
    "ovirt-enforcer run": "a service, which does not end: tests/enforcer/service",
    "ovirt-enforcer maintenance run": "an enforcer that runs: tests/scenarios/maintenance-run",
    "ovirt-enforcer approve 3f2a": "a plan that waits: tests/enforcer/cli/test_orders.py",
    "ovirt-placement ha-check --failures 3 --processes": "processes: tests/placement/cli/test_ha_check.py",
    "ovirt-placement groups edit web-apart --add-vm web3 --fail-if": "a group of another page",
    "ovirt-placement why ora1 node3": "a host of another page: tests/docs/recipes",
    "ovirt-placement rules check rules.yaml": "a file of the reader's: tests/placement/cli/rules",
    "ovirt-placement groups add others": "VMs of another page: tests/docs/recipes",
    "ovirt-placement keys set PRIV7 1 100 --on customer 3c1a": "a user whom only the reader has",
    "ovirt-placement keys set Repel1 1 -100 --on customer acme": "a user whom only the reader has",
}


def can_run(command: str) -> bool:
    return (
        command.startswith(tuple(COMMANDS))
        and not command.startswith(tuple(ELSEWHERE))
        and not _PLACEHOLDER.search(command)
    )


WALKS = {page: [one for one in commands(page) if can_run(one)] for page in PAGES}


@contextmanager
def walk(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveEngine]:
    """Commands find an engine by the system's configuration, and what pages keep in files in their folder."""
    with live_engine(STATE, folder, capsys, monkeypatch, more=DOMAINS) as live:
        monkeypatch.setenv("OVIRT_PLACEMENT_CONFIG", str(live.config))
        monkeypatch.chdir(folder)
        (folder / "docs").symlink_to(CHECKOUT / "docs")
        yield live


def run(command: str) -> int:
    name, *arguments = words(command)
    return COMMANDS[name](arguments)


@pytest.mark.parametrize(
    "page", [page for page, walked in WALKS.items() if walked], ids=lambda page: page.name
)
def test_commands_of_a_page_can_be_run_one_after_the_other(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("cluster.json", "state.json"):
        (tmp_path / file).write_bytes(state_file.dumps(STATE))
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    with walk(tmp_path, capsys, monkeypatch):
        assert run("ovirt-enforcer resume") == 0  # from now on there is a store
        for command in WALKS[page]:
            status = run(command)
            said = capsys.readouterr()
            assert status in (0, 1, 3, 4), f"{command}: {said.err}"


def test_most_commands_are_run() -> None:
    shown = [one for page in PAGES for one in commands(page) if one.startswith(tuple(COMMANDS))]
    assert sum(map(len, WALKS.values())) > len(shown) / 2
    assert [one for one in ELSEWHERE if not any(command.startswith(one) for command in shown)] == []


def test_the_readmes_first_steps_work_on_an_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line, as README has them, with the files that they write."""
    text = (CHECKOUT / "README.md").read_text()
    block = text[text.index("## Trying it on an engine") :].split("```")[1]
    lines = _LINE.findall(block)
    assert [command.split()[1] for command, _ in lines] == ["snapshot", "plan"]
    with walk(tmp_path, capsys, monkeypatch) as live:
        for command, file in lines:
            assert run(command) == 0
            printed = capsys.readouterr().out
            if file:
                (tmp_path / file).write_text(printed)
        assert "Cluster Default: every rule is satisfied." in printed
        assert live.changes == []
