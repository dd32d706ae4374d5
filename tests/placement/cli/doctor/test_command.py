"""`ovirt-placement doctor` against a simulated engine, a real inventory and a real store."""

import os
import re
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from ovirt_placement import config
from ovirt_placement.answers import proxy as local_proxy
from ovirt_placement.answers.doctor import machine
from ovirt_placement.inventory.publication import ask_moments, now
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore
from ovirt_placement.store.orders import PauseStore
from ovirt_simulator.http import documents
from ovirt_simulator.http.control import Permit, User
from tests.builders import cluster, host, snapshot
from tests.placement.cli.doctor.examining import EMPTY, RULED, findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.inventory.running import running as running_service

ENFORCE = '[enforcer]\nmode = "enforce"\n'


def store_of(live: LiveEngine) -> str:
    return str(config.load(live.config).store.url)


@pytest.mark.system
def test_no_problem_after_setup_with_inventory_proxy_and_enforcer(starting: Starting, proxy: str) -> None:
    with starting(RULED, more=ENFORCE) as live:
        live.run(0, "setup --cluster blue")
        LeaseStore(store_of(live), engine="default").take_lease("here", 60.0)
        with running_service(live.config):
            out, _ = live.run(0, "doctor", "--proxy", proxy)
            assert out.startswith("No problem was found: engine, scheduling policies, proxy, ")
            found = live.data(0, "doctor", "--proxy", proxy)
            assert (found["findings"], found["not_examined"], found["not_in_use"]) == ([], [], [])


@pytest.mark.system
def test_health_is_not_claimed_of_what_was_not_examined_or_is_not_in_use(starting: Starting) -> None:
    with starting(EMPTY) as live, running_service(live.config):
        out, _ = live.run(0, "doctor")
        assert "not examined: the proxy: there is no /etc/ovirt-scheduler-proxy/ovirt-sch" in out
        assert "not in use: no cluster's scheduling policy has our units: VMs start by the engine's" in out
        assert "not in use: no enforcer runs: violated rules are not repaired" in out
        assert out.endswith("No problem was found in what was examined.\n")


@pytest.mark.system
def test_a_cluster_without_our_units_and_an_enforcer_that_observes_or_is_paused(
    starting: Starting, proxy: str
) -> None:
    two = snapshot(*RULED.clusters, cluster("c2", name="green"), host("h9", cluster="c2"))
    with starting(two, more=ENFORCE) as live, running_service(live.config):
        live.run(0, "setup --cluster blue")
        epoch = LeaseStore(store_of(live), engine="default").take_lease("here", 60.0)
        assert epoch is not None
        EnforcerSettingsStore(store_of(live), engine="default").record(epoch, {"mode": "observe"})
        pauses = PauseStore(store_of(live), engine="default")
        pauses.pause("", cluster_name="", reason="upgrade", set_by="root", seconds=None)
        green, observes, *others = live.data(0, "doctor", "--proxy", proxy)["not_in_use"]
    assert "these clusters have none of our units: green" in green
    assert observes.startswith("ovirt-enforcer is in observe mode")
    differs = (
        "[enforcer] mode enforce: the enforcer that leads was started with observe"
        " (systemctl restart ovirt-enforcer)"
    )
    assert differs in others
    assert any(one.startswith("migrations are paused: root paused everything at ") for one in others)


@pytest.fixture
def proxys_file(proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a proxy of this machine, which records next to it."""
    monkeypatch.setattr(local_proxy, "PROXY_DIRECTORY", tmp_path)
    monkeypatch.setattr(local_proxy, "LOG_DIRECTORY", tmp_path)
    file = tmp_path / "ovirt-scheduler-proxy.toml"
    file.write_text(f'[server]\nlisten = "{proxy.removeprefix("http://").rstrip("/")}"\n')
    return file


@pytest.mark.system
def test_the_proxy_of_this_machine_is_asked(
    starting: Starting, proxy: str, proxys_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "decisions.jsonl").touch()
    with starting(RULED) as live, running_service(live.config):
        live.run(0, "setup --cluster blue")
        assert live.data(0, "doctor")["not_examined"] == []
        status = live.data(3, "status")
        assert (status["proxy"]["url"], status["proxy"]["error"]) == (proxy, None)
        assert "AffinityFilter" in status["proxy"]["units"]
        proxys_file.write_text('[server]\nlisten = "127.0.0.1:1"\n')
        assert findings(live)[0].startswith("the proxy at http://127.0.0.1:1 does not answer")
        assert "the proxy does not answer" in live.data(3, "status")["reasons"]
        proxys_file.write_text("[server\n")
        status = live.data(3, "status")
        assert "the proxy's configuration cannot be read" in status["reasons"]
        assert (status["proxy"]["url"], "not TOML" in status["proxy"]["error"]) == (None, True)
        assert f"Proxy: {proxys_file}: not TOML" in live.run(3, "status")[0]
        assert "the proxy: " in live.data(0, "doctor")["not_examined"][0]


@pytest.mark.system
def test_the_proxys_record_is_missing_without_room_unreadable_or_not_wanted(
    starting: Starting, proxys_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "log"
    logs.mkdir()
    record = logs / "decisions.jsonl"
    monkeypatch.setattr(local_proxy, "LOG_DIRECTORY", logs)
    looked, left = os.statvfs, [0]

    def statvfs(path: Path) -> SimpleNamespace | os.statvfs_result:
        """The disk with the record has this much left for its users, all others what they have."""
        return SimpleNamespace(f_bavail=left[0], f_frsize=4096) if path == logs else looked(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    with starting(RULED) as live, running_service(live.config):
        live.run(0, "setup --cluster blue")
        left[0] = 256  # 1 MiB
        (missing,) = live.data(1, "doctor")["findings"]
        assert (missing["kind"], str(record) in missing["sentence"]) == ("no_record", True)
        record.touch()
        assert live.data(0, "doctor")["findings"] == []
        left[0] = 0
        (full,) = live.data(1, "doctor")["findings"]
        assert full["kind"] == "record_disk_full"
        assert f"the proxy records its decisions: {record}" in full["sentence"]
        left[0] = 256
        record.unlink()
        record.mkdir()
        (unreadable,) = live.data(0, "doctor")["not_examined"]
        assert unreadable.startswith(f"the proxy's record of decisions: {record}: cannot")
        proxys_file.write_text(f"{proxys_file.read_text()}[decisions]\nrecord = false\n")
        found = live.data(0, "doctor")
        assert found["not_examined"] == []
        assert any(one.startswith("the proxy records no decisions") for one in found["not_in_use"])


@pytest.mark.system
@pytest.mark.parametrize(("seconds", "word"), [(3600, "ahead of"), (-3600, "behind")])
def test_clock_that_differs(starting: Starting, seconds: int, word: str) -> None:
    with starting(EMPTY, clock=datetime.now(UTC) + timedelta(seconds=seconds)) as live:
        (what,) = findings(live)
    assert re.match(rf"the engine's clock is 3\d* s {word} this one", what)


def test_engine_that_is_too_old(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "VERSION", ("4", "3", "10", "ovirt-engine-4.3.10"))
    with starting(EMPTY) as live:
        (what,) = findings(live)
    assert what.startswith("the engine is 4.3, older than 4.4")


@pytest.mark.system
def test_engine_that_enforces_alongside_us(starting: Starting) -> None:
    """The engine says why it migrated; our own migrations and its balancing are none of that."""
    state = snapshot(*RULED.clusters, *RULED.hosts, *RULED.vms)
    with starting(state, more=ENFORCE) as live:
        live.engine.vms.migrate_by_system("v1", "Load balancing")
        live.engine.advance(1)
        assert findings(live) == []
        live.engine.advance(60)
        live.engine.vms.migrate_by_system("v2", "Affinity rules enforcement")
        (what,) = (what for what in findings(live) if "clock" not in what)
        assert what.startswith("both the engine and ovirt-enforcer repair affinity groups")
        live.config.write_text(live.config.read_text().replace('enforce"', 'observe"'))
        assert [what for what in findings(live) if "clock" not in what] == []


MOVES = "me@internal itself has no permit migrate_vm on cluster blue"
REPORTS = "me@internal itself has no permit inject_external_events on the system"


@pytest.mark.parametrize(
    ("permits", "lacking"),
    [
        ((), [MOVES, REPORTS]),
        ((Permit.MIGRATE_VM,), [REPORTS]),
        ((Permit.INJECT_EXTERNAL_EVENTS,), [MOVES]),
        ((Permit.MIGRATE_VM, Permit.INJECT_EXTERNAL_EVENTS), []),
    ],
)
def test_permits_that_the_enforcer_lacks(
    starting: Starting, permits: tuple[Permit, ...], lacking: list[str]
) -> None:
    users = {"me@internal": User(password="password", admin=True, permits=frozenset(permits))}
    with starting(EMPTY, users=users, username="me@internal", more=ENFORCE) as live:
        whats = findings(live)
    assert sorted(what.partition(":")[0] for what in whats) == sorted(lacking)


def test_engine_that_is_away_is_a_finding_and_a_configuration_at_fault_is_status_2(
    starting: Starting,
) -> None:
    with starting(EMPTY) as live:
        live.server.close()
        (what,) = findings(live)
        assert "the engine does not answer" in what
        live.config.write_text('[engine]\nurl = "http://x"\n[store]\nurl = "mysql://x"\nz = 1\n')
        assert "[store] z: unknown key" in live.run(2, "doctor")[1]


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("sqlite:////nowhere/at/all/store.db", "the store /nowhere/at/all/store.db does not exist"),
        ("mysql://x", 'store] url: "mysql://x" is neither'),
    ],
)
def test_store_that_cannot_be_reached(starting: Starting, tmp_path: Path, url: str, what: str) -> None:
    with starting(EMPTY) as live:
        live.config.write_text(live.config.read_text().replace(f"sqlite:///{tmp_path}/store.db", url))
        found = live.data(1, "doctor")
    whats = [each["sentence"] for each in found["findings"]] + found["not_examined"]
    assert any(what in each for each in whats)


def test_store_of_a_newer_release_and_one_that_is_well(starting: Starting, tmp_path: Path) -> None:
    with starting(EMPTY) as live:
        with closing(Store(store_of(live), engine="default")) as store:
            store.open_intents()
        assert findings(live) == []
        with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
            database.execute("UPDATE schema_version SET version = version + 1")
        (what,) = findings(live)
    assert "has schema version" in what


@pytest.mark.system
def test_inventory_that_is_stale(starting: Starting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs and cannot read the engine any more."""
    monkeypatch.setattr(machine, "_STALE_SECONDS", 0.2)
    with starting(EMPTY) as live:
        often = live.config.read_text().replace("[inventory]\n", "[inventory]\ninterval_seconds = 0.1\n")
        live.config.write_text(often)
        with running_service(live.config):
            live.server.close()
            while (moments := ask_moments(tmp_path / "run", 30.0)) and now() - moments.as_of <= 0.3:
                time.sleep(0.02)  # what passes is the time that it has not read the engine
            whats = [each["sentence"] for each in live.data(1, "doctor")["findings"]]
    assert any("the inventory's last snapshot is" in what for what in whats)


def test_store_that_the_inventory_cannot_read(starting: Starting, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database" * 100)
    with starting(EMPTY) as live, running_service(live.config):
        whats = [each["sentence"] for each in live.data(1, "doctor")["findings"]]
    assert any("the inventory cannot read the store: decisions are made without" in what for what in whats)
