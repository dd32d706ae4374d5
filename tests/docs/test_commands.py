"""Commands and pages agree: what is shown can be run, help fits, and what there is stands on its page."""

import argparse
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pytest
import trustme

from ovirt_enforcer.cli import main as enforcer
from ovirt_enforcer.gates.admission import GATES
from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.model import state_file
from tests.builders import cluster, host, snapshot, vm
from tests.docs.shown import (
    COMMANDS,
    PAGES,
    PARSERS,
    commands,
    every,
    fenced,
    lines_of,
    printed,
    section,
    subcommands,
)
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import PASSWORD, LiveEngine, live_engine
from tests.processes import Forked
from tests.proxy.running import eventually

SHOWN = [(page, command) for page in PAGES for command in commands(page)]


def words(command: str) -> list[str]:
    """What is typed; what stands in brackets is taken along, and "..." for more of the same left out."""
    return shlex.split(command.replace("[", "").replace("]", "").replace(" ...", ""))


def parsed(command: str, name: str, arguments: list[str]) -> argparse.Namespace:
    try:
        return PARSERS[name].parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{command}: what the parser says is printed")


def test_what_is_shown_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(SHOWN) > 60
    monkeypatch.chdir(CHECKOUT)
    for page, command in SHOWN:
        name, *arguments = words(command)
        state = getattr(parsed(f"{page}: {command}", name, arguments), "state", None)
        if state is not None and state.exists() and name == "ovirt-placement":
            assert COMMANDS[name](arguments) in (0, 1), (page, command)


@pytest.mark.parametrize("command", ["ovirt-placement", "ovirt-enforcer"])
def test_help_of_each_command_has_examples(command: str) -> None:
    """One to four lines, each a command that is parsed and does what the help is about."""
    for parser in subcommands(PARSERS[command]):
        first, *lines = (parser.epilog or "").rstrip().splitlines() or [""]
        assert (first, 1 <= len(lines) <= 4) == ("examples:", True), parser.prog
        for line in lines:
            assert line.startswith(f"  {parser.prog}"), line
            name, *arguments = shlex.split(line.split("> ")[0], comments=True)
            parsed(line, name, arguments)


ENFORCER = CHECKOUT / "docs" / "enforcer"
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
    "ovirt-placement why ora1 node3": "a host of another page, which is tried below",
    "ovirt-placement rules check rules.yaml": "a file of the reader's: tests/placement/cli/rules",
    "ovirt-placement groups add others": "VMs of another page, which are tried below",
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


@pytest.mark.parametrize("page", [page for page, walked in WALKS.items() if walked], ids=lambda one: one.name)
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


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for parser in chain.from_iterable(map(every, PARSERS.values())):
        filled, _, examples = parser.format_help().partition("\nexamples:\n")
        assert [line for line in filled.splitlines() if len(line) > columns] == [], parser.prog
        assert " ".join((parser.description or "").split()) in " ".join(filled.split()), parser.prog
        assert f"examples:\n{examples}".rstrip() == (parser.epilog or "examples:\n").rstrip(), parser.prog


# -- What there is stands on its page.
ROWS_OF_STATUSES = re.findall(r"^\| (\d+) \| (.*?) \|", (CHECKOUT / "docs/json.md").read_text(), re.MULTILINE)
_REPORTED = re.compile(r"exit status(?: is|:) (.*)", re.IGNORECASE | re.DOTALL)


def statuses(parser: argparse.ArgumentParser) -> set[str]:
    """Those of which a command's help shows."""
    found = _REPORTED.search(parser.description or "")
    return set(re.findall(r"\b[0-4]\b(?= )", found[1])) if found else set()


def test_each_status_that_a_command_reports_stands_in_the_table() -> None:
    reporting = [one for parser in PARSERS.values() for one in subcommands(parser) if statuses(one)]
    assert len(reporting) > 8
    for parser in reporting:
        name = parser.prog.partition(" ")[2]
        for status in statuses(parser):
            named = [commands for number, commands in ROWS_OF_STATUSES if number == status]
            assert any(commands == "all" or f"{name}`" in commands for commands in named), (name, status)


def test_every_gate_has_its_row() -> None:
    cells = re.findall(r"^\| (.*?) \|", (ENFORCER / "gates.md").read_text(), re.MULTILINE)
    named = {word for cell in cells for word in re.findall(r"`(\w+)[`{]", cell)}
    assert named >= {gate.name for gate in GATES}


def test_every_command_of_the_enforcer_is_named() -> None:
    pages = "\n".join(page.read_text() for page in (ENFORCER.with_suffix(".md"), *ENFORCER.glob("*.md")))
    named = {" ".join(one.prog.split()[:2]) for one in subcommands(PARSERS["ovirt-enforcer"])}
    assert len(named) > 8
    assert [command for command in named if command not in pages] == []


# -- What pages show of commands with what these print: README, the quick start, and a recipe.
DOCS = CHECKOUT / "docs"
SCREENS = fenced((CHECKOUT / "README.md").read_text(), "console")
README = printed(SCREENS[:1])
SETTINGS = '[enforcer]\nmode = "enforce"\ninterval_seconds = 1\npoll_seconds = 0.2\n'
#: Of the quick start, by their status: nothing to say, violated, a plan repairs all.
STATUSES = {"violations": 1, "why": 0, "plan": 3, "conflicts": 1, "what-if": 0}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.mark.parametrize(("command", "output"), README, ids=[command for command, _ in README])
def test_the_readme_shows_what_is_printed(
    command: str, output: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    name, *arguments = command.split()
    assert COMMANDS[name](arguments) in (0, 1, 3)
    assert lines_of(capsys.readouterr().out) == output


def test_the_readme_shows_a_rule_a_refusal_and_a_plan() -> None:
    assert [command.split()[1] for command, _ in README] == ["violations", "why", "plan"]


@pytest.mark.system
def test_the_enforcer_repairs_what_the_readme_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_file.load(DOCS / "first-look.json")
    ((command, wanted),) = printed(SCREENS[1:2])
    with live_engine(state, tmp_path, capsys, monkeypatch, more=SETTINGS) as live:
        words = ["run", "--config", str(live.config)]
        with Forked(enforcer.main, words, tmp_path / "enforcer.log", os.environ) as daemon:
            eventually(lambda: lines_of(live.outcome(*command.split()[1:])[1]) == wanted)
            daemon.terminate()


def test_the_quick_start_needs_no_configuration_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "quick-start.md").read_text()
    typed = [
        (command.removeprefix(".venv/bin/"), lines) for command, lines in printed(fenced(page, "console"))
    ]
    walked = [(shlex.split(command), lines) for command, lines in typed if command.startswith("ovirt-")]
    (exported,) = re.findall(r"^\$ export (.*)$", page, re.MULTILINE)
    assert {words[1] for words, _ in walked} == STATUSES.keys()
    with live_engine(state_file.load(DOCS / "first-look.json"), tmp_path, capsys, monkeypatch) as live:
        monkeypatch.delenv(PATH_VARIABLE, raising=False)
        monkeypatch.chdir(tmp_path)
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        here = {"OVIRT_URL": live.server.api_url, "OVIRT_USERNAME": "admin@internal"}
        for name, _, value in (word.partition("=") for word in shlex.split(exported)):
            monkeypatch.setenv(name, here.get(name, value))
        monkeypatch.setenv("OVIRT_PASSWORD", PASSWORD)
        for (name, *words), expected in walked:
            assert COMMANDS[name](words) == STATUSES[words[0]]
            found = capsys.readouterr()
            assert (words, found.err, lines_of(found.out)) == (words, "", expected)
        assert live.changes == []


def test_the_recipe_of_licensed_hosts_shows_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = printed(fenced(section(DOCS / "recipes.md", "Licensed hosts on a small cluster")))
    assert len(walked) > 4
    state = state_file.load(DOCS / "recipes" / "licensed.json")
    with live_engine(state, tmp_path, capsys, monkeypatch) as live:
        monkeypatch.setenv(PATH_VARIABLE, str(live.config))
        for command, expected in walked:
            name, *words = shlex.split(command)
            COMMANDS[name](words)
            found = capsys.readouterr()
            assert (command, alike(lines_of(found.out + found.err))) == (command, alike(expected))


def alike(lines: list[str]) -> list[str]:
    """Without what differs from one run to another."""
    return [_ID.sub("ID", line) for line in lines]
