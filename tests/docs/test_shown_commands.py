"""Every command that a page shows is one: it is parsed, and run where it says on what."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from tests.builders import host, snapshot, vm
from tests.docs.parsers import PARSERS
from tests.docs.shown import PAGES, commands
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import PASSWORD, live_engine

SHOWN = [(page, command) for page in PAGES for command in commands(page)]


def words(command: str) -> list[str]:
    """What is typed; what stands in brackets is taken along, and "..." for more of the same left out."""
    return shlex.split(command.replace("[", "").replace("]", "").replace(" ...", ""))


def test_pages_show_commands() -> None:
    assert len(SHOWN) > 60


@pytest.mark.parametrize(
    ("page", "command"), SHOWN, ids=lambda one: one.stem if isinstance(one, Path) else one
)
def test_what_is_shown_is_a_command(
    page: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *arguments = words(command)
    try:
        args = PARSERS[name].parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{page}: {capsys.readouterr().err}")
    state = getattr(args, "state", None)
    monkeypatch.chdir(CHECKOUT)
    if state is not None and state.exists() and name == "ovirt-placement":
        assert main(arguments) in (0, 1)


def test_the_readmes_first_steps_work_on_an_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As README has them, with the address of a simulated engine."""
    readme = (CHECKOUT / "README.md").read_text()
    assert "ovirt-placement snapshot > cluster.json" in readme
    assert "ovirt-enforcer plan --state cluster.json" in readme
    with live_engine(snapshot(host("h1"), vm("v1", "h1")), tmp_path, capsys, monkeypatch) as live:
        for variable, value in (
            ("URL", live.server.api_url), ("USERNAME", "admin@internal"), ("PASSWORD", PASSWORD)
        ):  # fmt: skip
            monkeypatch.setenv(f"OVIRT_{variable}", value)
        monkeypatch.setattr("ovirt_placement.config.DEFAULT_PATH", tmp_path / "none.toml")
        (tmp_path / "cluster.json").write_text(live.run(0, "snapshot")[0])
    assert main(["violations", "--state", str(tmp_path / "cluster.json")]) == 0
