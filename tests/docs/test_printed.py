"""What pages show of commands with what these print: README, the quick start, and a recipe."""

import os
import re
import shlex
from pathlib import Path

import pytest
import trustme

from ovirt_enforcer.cli import main as enforcer
from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.model import state_file
from tests.docs.shown import COMMANDS, fenced, lines_of, printed, section
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import PASSWORD, live_engine
from tests.processes import Forked
from tests.proxy.running import eventually

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
