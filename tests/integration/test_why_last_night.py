"""Why a VM did not start: a real engine refuses, a real proxy records, and the commands say so afterwards."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import ovirtsdk4
import pytest

from ovirt_placement.answers import proxy
from ovirt_placement.cli.main import main
from ovirt_placement.engine import events
from ovirt_placement.model import SchedulingPolicy
from tests.builders import TOGETHER, cluster, group, host, snapshot, vm
from tests.integration.world import World, running
from tests.placement.cli.documents import parsed

POLICY = SchedulingPolicy(filters=("AffinityFilter",), weights={"SoftAffinityWeight": 1})
#: The engine's own filters leave out north, which is full. That web must be where db1 is, by way of a VM that
#: is down, the engine does not see: ours refuses south.
STATE = snapshot(
    cluster("c1", name="blue", scheduling_policy=POLICY),
    host("h1", cluster="c1", name="north", free_mb=3000),
    host("h2", cluster="c1", name="south", free_mb=20_000),
    host("h3", cluster="c1", name="east", status="maintenance"),
    vm("v1", "h1", cluster="c1", name="db1", status="up"), vm("v2", cluster="c1", name="cache"),
    vm("v3", cluster="c1", name="web", memory_mb=4096, guaranteed_mb=4096),
    vm("v4", cluster="c1", name="huge", memory_mb=900_000, guaranteed_mb=900_000),
    vm("v5", cluster="c1", name="calm"), group("g1", TOGETHER, "v1 v2", cluster="c1", name="data"),
    group("g2", TOGETHER, "v2 v3", cluster="c1", name="front"),
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        # As systemd does it; no configuration says that decisions are to be recorded.
        (folder / "log").mkdir()
        patch.setenv("LOGS_DIRECTORY", str(folder / "log"))
        with running(folder, STATE, time_scale=1) as found:
            for name in ("v3", "v3", "v4"):
                with pytest.raises(ovirtsdk4.Error):
                    found.start(name)
            found.start("v5")
            found.until_called("runCostFunctions", 1, "v5")
            lines = found.folder / "log" / "decisions.jsonl"
            found.until(lambda: lines.exists() and lines.read_bytes().count(b"\n") >= 4, "the record")
            yield found


@pytest.fixture(autouse=True)
def proxy_here(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record stands where that of the service does."""
    monkeypatch.setattr(proxy, "LOG_DIRECTORY", world.folder / "log")
    monkeypatch.setattr(proxy, "PROXY_DIRECTORY", world.folder / "none")


def now() -> str:
    return datetime.fromtimestamp(time.time()).strftime("%H:%M:%S")


class Asking:
    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self._config, self._capsys = str(world.config), capsys

    def text(self, *arguments: str, status: int = 0) -> str:
        self._capsys.readouterr()
        assert main(["why", *arguments, "--config", self._config]) == status
        found = self._capsys.readouterr()
        return found.err if status else found.out

    def data(self, *arguments: str) -> Any:
        return parsed(self.text(*arguments, "--json"))


@pytest.fixture
def asking(world: World, capsys: pytest.CaptureFixture[str]) -> Asking:
    return Asking(world, capsys)


def test_at_a_moment_the_decision_has_its_reasons_and_what_would_have_let_it_start(asking: Asking) -> None:
    found = asking.data("web", "--at", now())
    assert found["after"] is None
    before = found["before"]
    assert before["after_seconds"] <= 0
    (south,) = before["filters"]["hosts"]
    (reason,) = south["reasons"]
    assert reason == {
        "unit": "AffinityFilter",
        "kind": "positive_peer_elsewhere",
        "group": {"id": "g1", "name": "affinity group data"},
        "vm": {"id": "v1", "name": "db1"},
        "sentence": "must run with VM db1, which is on host north (affinity group data)",
    }
    assert {one["host"]["name"] for one in before["not_asked"]} == {"north", "east"}
    assert [(way["kind"], way["what"], [one["name"] for one in way["hosts"]]) for way in before["ways"]] == [
        ("relax", ["g1"], ["south"])
    ]
    assert found["events_error"] is None


def test_events_that_are_cut_off_are_reported(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asking.data("--refused")["events_since"] is None
    assert asking.data("web", "--at", "2026-01-01T00:00+00:00")["events_since"] is None
    monkeypatch.setattr(events, "_NEWEST", 1)  # of three
    found = asking.data("--refused")
    (huge,) = (one for one in found["refused"] if one["vm"]["name"] == "huge")
    assert found["events_since"] == huge["events"][0]["time"]
    said = f"The engine's events before {found['events_since']} were not read: it has more than are read"
    assert said in asking.text("--refused")
    assert said in asking.text("web", "--at", "2026-01-01T00:00+00:00")
    assert asking.data("--refused", "--since", "0s")["events_since"] is None


def test_a_start_within_the_minute_that_is_named_is_found(asking: Asking) -> None:
    (huge,) = (one for one in asking.data("--refused")["refused"] if one["vm"]["name"] == "huge")
    before = datetime.fromisoformat(huge["first"]) - timedelta(seconds=50)
    found = asking.data("huge", "--at", before.isoformat())
    assert [one["time"] for one in found["events"]] == [huge["first"]]
    assert asking.data("huge", "--at", (before - timedelta(seconds=60)).isoformat())["events"] == []


def test_the_last_refusal_before_a_quiet_moment_is_shown_with_its_distance(asking: Asking) -> None:
    later = (datetime.now().astimezone() + timedelta(hours=3, minutes=10)).isoformat(timespec="seconds")
    found = asking.data("huge", "--at", later)
    assert found["events"] == []
    assert found["earlier"]["engine"]["start"]
    assert -3 * 3600 - 1200 < found["earlier"]["after_seconds"] < -3 * 3600
    assert "\nThe engine refused it last 3 h before, " in asking.text("huge", "--at", later)


def test_before_the_record_it_says_when_that_begins(asking: Asking) -> None:
    assert asking.data("calm", "--at", now())["record_begins"] is None
    asked = ("calm", "--at", "2026-01-01T00:00+00:00")
    found = asking.data(*asked)
    first = asking.data("--refused")["recorded_since"]
    assert found["record_begins"] == first
    assert f"The proxy's record begins later, at {first}." in asking.text(*asked)


def test_it_reads_as_an_administrator_asks(asking: Asking) -> None:
    text = asking.text("web", "--at", now())
    assert "The last decision until then, " in text
    assert "0 of 1 hosts passed" in text
    assert "must run with VM db1, which is on host north (affinity group data)" in text
    assert "Not asked about: east, north: " in text
    assert "It could have been placed without affinity group data: host south" in text


def test_all_that_was_refused_stands_once_with_reasons_of_proxy_and_engine(asking: Asking) -> None:
    found = asking.data("--refused")
    huge, web = sorted(found["refused"], key=lambda one: str(one["vm"]["name"]))
    assert (web["vm"]["name"], web["times"], web["what"]) == ("web", 2, "start")
    assert [one["host"]["name"] for one in web["hosts"]] == ["south"]
    # The engine's own filters left no host, and the proxy was never asked: the event has the reasons. It
    # names one host for all of them, so none of the hosts is said to have been refused for it.
    assert (huge["vm"]["name"], huge["what"], huge["hosts"]) == ("huge", "start", [])
    assert {one["host"]["name"]: one["engine"] for one in huge["not_asked"]} == dict.fromkeys(
        ("east", "north", "south")
    )
    assert "did not satisfy internal filter Memory" in huge["events"][0]["sentence"]
    assert found["record_error"] is None
    assert found["events_error"] is None
    text = asking.text("--refused")
    assert "start of VM web refused, 2 times until " in text
    assert "  south: must run with VM db1, which is on host north (affinity group data)" in text
    assert "calm" not in text
    assert asking.data("web", "--refused", "--since", "1h")["refused"] == [web]
    assert asking.data("calm", "--refused")["refused"] == []
    assert "is known to have been refused" in asking.text("calm", "--refused")
    without_record = asking.text("calm", "--refused", "--decisions", "/nowhere/decisions.jsonl")
    assert ", by the engine's events alone.\n" in without_record


def test_the_last_decisions_are_as_many_as_are_asked_for(asking: Asking) -> None:
    assert len(asking.data("web", "--last", "2")["decisions"]) == 2
    assert len(asking.data("web", "--last", "9")["decisions"]) == 2
    found = asking.data("calm", "--last", "5")["decisions"]
    assert [(one["method"], *one["state_age_seconds"]) for one in found] == [
        ("runFilters", "AffinityFilter"),
        ("runCostFunctions", "SoftAffinityWeight"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which VM? why VM, or why --refused"),
        (["web", "--since", "1h"], "--since goes with --refused"),
        (["nobody", "--at", "02:13"], "nobody"),
    ],
)
def test_what_is_not_a_question_is_one_line(asking: Asking, words: list[str], said: str) -> None:
    complaint = asking.text(*words, status=2)
    assert complaint.count("\n") == 1
    assert said in complaint


def test_without_a_record_the_engines_events_still_answer(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(proxy, "LOG_DIRECTORY", tmp_path)
    found = asking.data("--refused")
    assert {one["vm"]["name"] for one in found["refused"]} == {"web", "huge"}
    assert "has no scheduler proxy of engine default" in found["record_error"]


@pytest.mark.system
def test_what_would_have_let_it_start_does(world: World, asking: Asking) -> None:
    """The oracle is the engine: with the rule that is named gone, the VM starts on the host that is named."""
    (way,) = asking.data("web", "--at", now())["before"]["ways"]
    world.remove_group("c1", way["what"][0])
    assert world.start("v3") == way["hosts"][0]["id"]
    world.stop("v3")
