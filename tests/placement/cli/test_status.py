"""`status` on a state file, on what an inventory publishes, by a real store, on an engine; and trends."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers import document
from ovirt_placement.answers.question import ConfiguredState
from ovirt_placement.answers.status import enforcement
from ovirt_placement.answers.status.clusters import cluster_status
from ovirt_placement.answers.status.ha_report import check_ha
from ovirt_placement.answers.status.history import MOST_POINTS, trend
from ovirt_placement.cli.main import main
from ovirt_placement.cli.questions import PATIENCE_SECONDS
from ovirt_placement.inventory.publication import Moments, now
from ovirt_placement.model import FrozenKeys, PlacementKey, StickyCopy, state_file
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.observations import Sample
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, PauseStore
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.kit.served import ServedInventory
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import Starting, StateAsking
from tests.placement.sockets import refusing_port
from tests.plugins.published import Publisher
from tests.stored import listening, prepared

# -- `status` on a state file, on what an inventory publishes, and on an engine that nobody follows.
STATE = snapshot(
    host("h1"),
    host("h2"),
    host("h3", status="maintenance"),
    vm("v1", "h1", ha=True),
    vm("v2", "h2"),
    vm("v3", "h2", status="migrating"),
    vm("v4"),
    group("split", TOGETHER, "v1 v2"),
    group("crowded", SOFT_APART, "v2 v3"),
    group("kept", APART, "v1 v3"),
)


@dataclass
class Asking:
    """Asks `status` with a configuration."""

    config: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def store(self) -> str:
        return str(config.load(self.config).store.url)

    def text(self, status: int, *options: str) -> str:
        assert main(["status", *options, "--config", str(self.config)]) == status
        return self.capsys.readouterr().out

    def data(self, status: int) -> Any:
        return plain(self.text(status, "--json"))


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path)


@pytest.fixture
def published(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> Asking:
    """What an inventory publishes, and a store."""
    publisher.publish(SAFE)
    return Asking(publisher.config, capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "state.json"
    written.write_bytes(state_file.dumps(STATE))
    return written


@pytest.mark.parametrize(
    ("tags", "tag", "matched"),
    [(("leave",), "leave", True), (("leave",), "leaf", False), ((), "leaf", True), (("leave",), "", True)],
)
def test_a_tag_of_the_configuration_that_nothing_in_a_state_file_bears(
    asking: StateAsking, tags: tuple[str, ...], tag: str, matched: bool
) -> None:
    """A file without any tag was made without them: of that nothing is known."""
    asking.configuration = f'[engine]\nurl = "https://engine"\n[enforcer]\nexclude_tag = "{tag}"\n'
    parts = host("h1"), vm("v1", "h1", tags=tags)
    reasons = asking.data(0 if matched else 3, "status", *parts)["reasons"]
    named = ["a name matches nothing: [enforcer] exclude_tag: there is no tag leaf"]
    assert [one.partition(";")[0] for one in reasons] == ([] if matched else named)


def test_hosts_that_are_marked_as_draining_are_named(asking: StateAsking) -> None:
    draining = replace(STATE, draining_hosts=("h2",))
    assert asking.data(3, "status", draining)["clusters"][0]["draining"] == ["h2"]
    marked = "Marked as draining in cluster cluster1, no VM is placed there: h2"
    assert f"{marked} (ovirt-enforcer maintenance status).\n" in asking.text(3, "status", draining)


def test_an_engine_that_nobody_follows(serving: Starting) -> None:
    with serving(snapshot(host("h1"), vm("v1", "h1"))) as live:
        found = live.data(0, "status")
        assert (found["source"]["kind"], found["source"]["where"]) == ("engine", live.server.url)
        (cluster,) = found["clusters"]
        assert (cluster["hosts_up"], cluster["vms_running"]) == (1, 1)


def test_keys_that_have_no_effect_yet_are_reported(publisher: Publisher, published: Asking) -> None:
    """What they refer to costs the engine time."""
    for level, waiting in (("cluster", False), ("disk", True), ("customer_offer", True)):
        publisher.publish(replace(STATE, placement_keys=(PlacementKey(level, "r", "system", "A", 1.0, 1.0),)))
        assert ("until then, keys on them have no effect" in published.text(3)) == waiting


@pytest.mark.parametrize(
    ("keys_ago", "said"),
    [
        (0.0, "read from the store 0."),
        (3600.0, "the store cannot be read, these are 36"),
        (None, "the store could not be read yet"),
    ],
)
def test_keys_come_with_their_numbers_and_what_became_of_the_store(
    publisher: Publisher, published: Asking, keys_ago: float | None, said: str
) -> None:
    known = replace(
        STATE,
        placement_keys=(PlacementKey("node", "h1", "system", "GEN", 1.0),),
        frozen_keys=(FrozenKeys("v1", (("A", 1.0),)), FrozenKeys("v2", ())),
        sticky_copies=(StickyCopy(vm="v1", name="SAN", value=1.0, weight=60.0),),
    )
    publisher.publish(known, keys_ago=keys_ago)
    found = published.data(3)
    assert found["placement_keys"] == {"keys": 1, "frozen_sets": 2, "sticky_copies": 1}
    assert f"Placement keys: 1, frozen sets: 2, sticky copies: 1: {said}" in published.text(3)
    assert found["source"]["store_answers"] == (keys_ago == 0.0)
    age = found["source"].get("keys_age_seconds")
    assert age is keys_ago is None or keys_ago <= age < keys_ago + 60


@pytest.fixture
def away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Asking]:
    """A machine whose engine is away."""
    with refusing_port() as port:
        yield Asking(write_configuration(tmp_path, f"http://127.0.0.1:{port}/ovirt-engine/api"), capsys)


def knows(away: Asking, seconds_ago: float, error: str | None = None) -> None:
    """Let an inventory of this machine have read a state then."""
    then = now() - seconds_ago
    served = ServedInventory(away.config, error=error)
    served.publish(STATE, Moments(then, store_asked_at=then, keys_at=then))


@pytest.fixture
def of_old(away: Asking) -> Asking:
    knows(away, 3600.0, error="the engine does not answer")
    return away


def test_it_answers_when_the_engine_is_away_by_what_was_known(of_old: Asking) -> None:
    assert "asked what changed 36" in of_old.text(1)
    found = of_old.data(1)
    assert (found["clusters"][0]["vms_running"], found["source"]["kind"]) == (3, "inventory")
    assert "the engine does not answer" in found["source"]["error"]


def test_an_engine_that_hangs_is_not_waited_for_where_something_is_known(
    away: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "_FRESH_SECONDS", 0.05)
    knows(away, 60.0)
    began = now()
    found = away.data(1)
    assert now() - began < PATIENCE_SECONDS / 4
    assert (found["clusters"][0]["vms_running"], found["source"]["kind"]) == (3, "inventory")
    assert found["source"]["error"]


def test_it_answers_where_nothing_is_known(away: Asking) -> None:
    """Not even a password; why the engine is away is said once, and its address as it is typed."""
    said = away.text(1)
    assert said.count("Connection refused: is ovirt-engine running") == 1
    assert ("?." in said, "Http" in said) == (False, False)
    content = away.config.read_text()
    away.config.write_text(re.sub("^password_file.*$", "", content, flags=re.MULTILINE))
    assert away.data(1)["source"]["kind"] == "nothing"
    assert away.text(1).endswith("Nothing is known of it here.\n")


@pytest.mark.parametrize("question", ["why v1", "where v1", "violations", "groups list", "conflicts"])
def test_other_questions_are_answered_of_old_only_when_that_is_wanted(
    of_old: Asking,
    question: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def ask(*options: str) -> tuple[int, str]:
        return main([*question.split(), *options]), capsys.readouterr().out

    configured = ("--config", str(of_old.config))
    assert main([*question.split(), *configured, "--timeout", "5"]) == 2
    assert "the engine does not answer" in capsys.readouterr().err
    status, answer = ask("--state", str(file))
    assert ask(*configured, "--stale") == (status, answer)
    assert "s old" in caplog.text
    found = plain(ask(*configured, "--stale", "--json")[1])
    assert found["age_seconds"] > 3599
    age = datetime.now(UTC) - datetime.fromisoformat(found["as_of"])
    assert age.total_seconds() == pytest.approx(found["age_seconds"], abs=60)
    fresh = plain(ask("--state", str(file), "--json")[1])
    assert (fresh["as_of"], fresh["age_seconds"]) == (None, None)


# -- `status`, also as `ovirt-enforcer status`: health by a real store, and the same from both commands.
SAFE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    host("h1", cluster="c1"),
    host("h2", cluster="c1"),
    vm("v1", "h1", cluster="c1", ha=True),
)


def set_mode(published: Asking, mode: str) -> None:
    published.config.write_text(f'{published.config.read_text()}\n[enforcer]\nmode = "{mode}"\n')


def test_it_is_healthy_where_rules_and_reservation_hold(published: Asking) -> None:
    found = published.data(0)
    (blue,) = found["clusters"]
    assert (found["health"], found["reasons"]) == ("healthy", [])
    assert (blue["ha_reservation"], blue["ha_safe"], blue["failures_survived"]) == (True, True, 1)
    assert published.text(0).startswith("Healthy.\nEnforcer: mode observe, no enforcer runs.\n")


def test_an_enforcer_that_is_to_act_and_does_not_run(published: Asking) -> None:
    set_mode(published, "enforce")
    assert published.data(3)["reasons"] == ["no enforcer runs"]
    LeaseStore(published.store, engine="default").take_lease("host-a:17", 60.0)
    found = published.data(0)["enforcer"]
    assert (found["mode"], found["leader"], found["epoch"]) == ("enforce", "host-a:17", 1)
    assert "Enforcer: mode enforce, led by host-a:17 (epoch 1).\n" in published.text(0)


def test_what_is_paused_or_waits_and_what_failed(published: Asking) -> None:
    PauseStore(published.store, engine="default").pause(
        "c1", cluster_name="blue", reason="upgrade", set_by="root", seconds=None
    )
    move = ApprovedMove(("v1",), ("h1",), "h2")
    ApprovalStore(published.store, engine="default").offer("c1", "abc", (move,), "a plan")
    store = Store(published.store, engine="default")
    moved = {"vm": "v1", "cluster": "c1", "source": "h1", "target": "h2"}
    failed = store.accept(prepared(store, **moved, correlation_id="x").id).id
    store.fail(failed, "no room", None)
    prepared(store, **moved, correlation_id="y")
    failures = "1 migration failed in the last 24 hours"
    assert published.data(3)["reasons"] == ["migrations are paused", "a plan waits for approval", failures]
    text = published.text(3)
    for said in (
        "Paused: root paused cluster blue at ",
        "Plan abc of cluster blue waits for approval since ",
        "Migrations: 1 under way; in the last 24 hours 0 done, 1 failed, 0 refused.\n",
        "Last failed: v1 to h2 at ",
    ):
        assert said in text


def test_a_store_that_does_not_answer(published: Asking) -> None:
    set_mode(published, "approve")
    content = published.config.read_text()
    published.config.write_text(content.replace(published.store, "postgresql://127.0.0.1:1/none"))
    found = published.data(3)
    assert found["reasons"] == ["the enforcer's store does not answer"]
    assert found["enforcer"]["error"]


# -- A mistake in the enforcer's section is reported before somebody wonders why the enforcer does not start.
WRONG = '[enforcer]\nmode = "enforse"\n'


def test_status_and_doctor_report_it(serving: Starting) -> None:
    with serving(snapshot(host("h1")), more=WRONG) as live:
        (mistake,) = live.data(1, "status")["mistakes"]
        assert 'mode: cannot be "enforse"' in mistake
        said = f"Unhealthy: a command will not start: {mistake}"
        assert live.run(1, "status")[0].splitlines()[0] == said
        kinds = {each["kind"] for each in live.data(1, "doctor")["findings"]}
        assert "mistaken_configuration" in kinds


# -- A cluster in numbers: what is free counts hosts that are up alone, and CPU counts by cores.
def test_headroom_is_that_of_hosts_that_are_up_and_unequal_hosts_count_by_their_cores() -> None:
    state = snapshot(
        host("small", memory_mb=1000, free_mb=-200, cores=2, cpu_percent=100),
        host("large", memory_mb=9000, free_mb=3000, cores=6, cpu_percent=20),
        host("silent", memory_mb=500, free_mb=500, cores=64, cpu_percent=None),
        host("away", memory_mb=70_000, free_mb=70_000, cores=64, cpu_percent=0, status="maintenance"),
    )
    found = cluster_status(state, CLUSTER)
    assert (found.memory_mb, found.memory_free_mb) == (10_500, 3500)
    assert found.cpu_percent == 40.0
    found = cluster_status(snapshot(), CLUSTER)
    assert (found.memory_mb, found.memory_free_mb, found.cpu_percent) == (0, 0, None)


# -- Where answers change: what is not proven is not safe, and how many hours a column of a trend stands for.
@pytest.mark.parametrize(
    ("free_mb", "steps", "safe"), [(4000, 1000, True), (500, 1000, False), (4000, 0, None)]
)
def test_only_what_is_proven_is_safe(free_mb: int, steps: int, safe: bool | None) -> None:
    state = snapshot(
        cluster(ha_reservation=True), host("h1"), host("h2", free_mb=free_mb), vm("a", "h1", ha=True)
    )
    answer = check_ha(ConfiguredState(state, pytest.fail), steps=steps)
    assert (answer.clusters[0].safe, answer.safe) == (safe, safe is True)


@given(st.sampled_from([1, 2, 3, 6, 12, 24, 48, 72]), st.integers(-1, 1), st.integers(0, 100))
def test_a_column_is_as_short_as_the_columns_allow(span: int, more: int, start: int) -> None:
    """Exactly as many hours as 48 columns of a span have take that span, and one more takes the next."""
    hours = span * MOST_POINTS + more
    samples = [Sample(cluster="c", hour=start + at, done=1) for at in range(hours)]
    samples[-1] = Sample(cluster="c", hour=start + 2 * hours, done=1)  # the clock was set back since
    answer = trend(samples, cluster=None, since=start * 3600.0, until=(start + hours - 1) * 3600.0)
    shortest = next(one for one in (1, 2, 3, 6, 12, *range(24, 200, 24)) if one * MOST_POINTS >= hours)
    assert answer.point_hours == shortest
    (found,) = answer.clusters
    assert len(found.points) == -(-hours // shortest) <= MOST_POINTS
    assert sum(point.activity.migrations for point in found.points) == hours


def test_what_the_store_says_is_asked_over_one_connection(tmp_path: Path) -> None:
    """To a server that is far away each takes a second or more."""
    found = config.load(write_configuration(tmp_path, "http://127.0.0.1/ovirt-engine/api"))
    PauseStore(found.store.url, engine="default", patience_seconds=5).pauses()
    made: list[object] = []
    with listening(connect=lambda *of: made.append(of)):
        assert enforcement(found, STATE).error is None
    assert len(made) == 1
