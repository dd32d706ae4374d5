"""`pause` and `resume`: at once, by name or id, whether or not the engine answers."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.store.orders import Pause, PauseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot
from tests.configuration import write_configuration
from tests.placement.cli.documents import defined
from tests.scenarios.stage import START

STATE = snapshot(cluster("c1", name="blue"), cluster("c2", name="red"), host("h1", cluster="c1"))
Say = Callable[..., str]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """A configuration for an engine that answers."""
    server = serve(Engine.from_snapshot(STATE, clock=START))
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
