"""`ovirt-placement doctor` against a simulated engine, a real inventory and a real store."""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ovirt_placement.answers.doctor import machine
from ovirt_placement.inventory.published import publication
from ovirt_placement.store.intents import Store
from ovirt_simulator.http.render import root
from ovirt_simulator.http.users import Permit, User
from tests.builders import snapshot
from tests.placement.cli.doctor.examining import EMPTY, RULED, findings
from tests.placement.cli.live_engine import Starting
from tests.placement.inventory.running import running as running_service


def test_all_is_well_after_setup_with_inventory_and_proxy(starting: Starting, proxy: str) -> None:
    with starting(RULED) as live:
        live.run(0, "setup", "--cluster", "blue")
        with running_service(live.config):
            out, _ = live.run(0, "doctor", "--proxy", proxy)
            assert out == "All is well.\n"
            found = live.data(0, "doctor")
            assert (found["findings"], found["not_examined"], found["hints"]) == ([], [], [])


def test_each_finding_says_what_to_do(starting: Starting) -> None:
    with starting(EMPTY) as live:
        out, _ = live.run(1, "doctor")
    what, remedy = out.splitlines()
    assert what.startswith("- no inventory publishes to ")
    assert remedy.startswith("  -> systemctl enable --now ovirt-placement-inventory")


@pytest.mark.parametrize(("seconds", "word"), [(3600, "ahead of"), (-3600, "behind")])
def test_clock_that_differs(starting: Starting, seconds: int, word: str) -> None:
    with starting(EMPTY, clock=datetime.now(UTC) + timedelta(seconds=seconds)) as live:
        (what,) = findings(live)
    assert what.startswith("the engine's clock is 3")
    assert f"s {word} this one" in what


def test_engine_that_is_too_old(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "VERSION", ("4", "3", "10", "ovirt-engine-4.3.10"))
    with starting(EMPTY) as live:
        (what,) = findings(live)
    assert what.startswith("the engine is 4.3, older than 4.4")


ENFORCE = '[enforcer]\nmode = "enforce"\n'


def test_engine_that_enforces_beside_us(starting: Starting) -> None:
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


def test_where_the_enforcer_acts_a_simulation_is_advised_and_is_no_finding(starting: Starting) -> None:
    with starting(EMPTY, more=ENFORCE) as live:
        out, _ = live.run(1, "doctor")
        (hint,) = live.data(1, "doctor")["hints"]
        live.config.write_text(live.config.read_text().replace('enforce"', 'observe"'))
        assert live.data(1, "doctor")["hints"] == []
    assert out.endswith(f"Hint: {hint}.\n")
    assert "ovirt-enforcer simulate-policy" in hint


MOVES = "me@internal itself has no permit migrate_vm on cluster blue"
TELLS = "me@internal itself has no permit inject_external_events on the system"


@pytest.mark.parametrize(
    ("permits", "lacking"),
    [
        ((), [MOVES, TELLS]),
        ((Permit.MIGRATE_VM,), [TELLS]),
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


def test_user_who_may_not_read(starting: Starting) -> None:
    with starting(EMPTY, username="user@internal") as live:
        (what,) = findings(live)
    assert "ReadOnlyAdmin" in what


def test_engine_that_is_away_is_a_finding(starting: Starting) -> None:
    with starting(EMPTY) as live:
        live.server.close()
        (what,) = findings(live)
    assert "the engine does not answer" in what


def test_configuration_at_fault_is_status_2(starting: Starting) -> None:
    with starting(EMPTY) as live:
        live.config.write_text('[engine]\nurl = "http://x"\n[store]\nurl = "mysql://x"\nz = 1\n')
        _, err = live.run(2, "doctor")
    assert "[store] z: unknown key" in err


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
        store = Store(f"sqlite:///{tmp_path}/store.db", engine="default")
        store.open_intents()
        store.close()
        assert findings(live) == []
        with sqlite3.connect(tmp_path / "store.db") as database:
            database.execute("UPDATE schema_version SET version = version + 1")
        database.close()
        (what,) = findings(live)
    assert "has schema version" in what


def test_inventory_that_is_stale(starting: Starting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs and cannot read the engine any more."""
    monkeypatch.setattr(machine, "_STALE_SECONDS", 1.0)
    with starting(EMPTY) as live:
        often = live.config.read_text().replace("[inventory]\n", "[inventory]\ninterval_seconds = 0.3\n")
        live.config.write_text(often)
        with running_service(live.config):
            live.server.close()
            while (found := publication.read(tmp_path / "run")) is not None and found.age_seconds <= 1.0:
                time.sleep(0.05)  # what passes is the time that it has not read the engine
            whats = [each["sentence"] for each in live.data(1, "doctor")["findings"]]
    assert any("the inventory's last snapshot is" in what for what in whats)


def test_store_that_the_inventory_cannot_read(starting: Starting, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database" * 100)
    with starting(EMPTY) as live, running_service(live.config):
        whats = [each["sentence"] for each in live.data(1, "doctor")["findings"]]
    assert any("the inventory cannot read the store: decisions are made without" in what for what in whats)
