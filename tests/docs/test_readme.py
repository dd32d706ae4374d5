"""README's first screen shows what the commands print, and an enforcer repairs the cluster that it shows."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ovirt_enforcer.cli import main as enforcer
from ovirt_placement.model.files import state_file
from tests.docs.parsers import COMMANDS
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import live_engine
from tests.processes import Forked
from tests.proxy.running import eventually

FIRST, AFTERWARDS = re.findall(r"```console\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)[:2]
SHOWN = [tuple(part.split("\n", 1)) for part in FIRST.removeprefix("$ ").split("\n$ ")]
SETTINGS = '[enforcer]\nmode = "enforce"\ninterval_seconds = 1\npoll_seconds = 0.2\n'


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_first_screen_shows_what_is_printed(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    name, *arguments = command.split()
    assert COMMANDS[name](arguments) in (0, 1, 3)
    assert capsys.readouterr().out.rstrip() == output.rstrip()


def test_it_shows_a_rule_a_refusal_and_a_plan() -> None:
    assert [command.split()[1] for command, _ in SHOWN] == ["violations", "why", "plan"]


@pytest.mark.system
def test_the_enforcer_repairs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_file.loads((CHECKOUT / "docs" / "first-look.json").read_bytes())
    command, wanted = AFTERWARDS.removeprefix("$ ").split("\n", 1)
    with live_engine(state, tmp_path, capsys, monkeypatch, more=SETTINGS) as live:
        words = ["run", "--config", str(live.config)]
        with Forked(enforcer.main, words, tmp_path / "enforcer.log", os.environ) as daemon:
            eventually(lambda: live.outcome(*command.split()[1:])[1] == wanted)
            daemon.terminate()
