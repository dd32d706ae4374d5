"""`ovirt-placement doctor` against a simulated engine, a real proxy, a real inventory and a real store."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from ovirt_placement.commands import doctor_machine
from ovirt_placement.inventory import publication
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.store import Store
from ovirt_placement.store_keys import KeyStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.http.render import root
from ovirt_simulator.http.users import Permit, User, default_users
from tests.builders import SOFT_TOGETHER, TOGETHER, cluster, group, host, label, snapshot, vm
from tests.placement.commands.live_engine import LiveEngine, live_engine
from tests.placement.inventory.service import running as running_service
from tests.placement.sockets import refusing_port
from tests.plugins.proxy_process import proxy_url

EMPTY = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1"))
RULED = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    host("h1", cluster="c1"),
    host("h2", cluster="c1"),
    vm("v1", "h1", cluster="c1", ha=True),
    vm("v2", "h2", cluster="c1"),
    group("g1", SOFT_TOGETHER, "v1 v2", cluster="c1", name="near"),
    group("g2", TOGETHER, "v1 v2", cluster="c1", name="tied", hosts_rule=TOGETHER, hosts="h1 h2"),
)


class Starting(Protocol):
    def __call__(self, state: Snapshot = EMPTY, **more: Any) -> AbstractContextManager[LiveEngine]: ...


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    with proxy_url(os.environ) as url:
        yield url


@pytest.fixture
def starting(
    proxy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Starting:
    def start(state: Snapshot = EMPTY, **more: Any) -> AbstractContextManager[LiveEngine]:
        return live_engine(state, tmp_path, capsys, monkeypatch, **{"proxy": proxy, **more})

    return start


def findings(live: LiveEngine, *arguments: str) -> list[str]:
    """What doctor finds, but for the inventory, which none of these tests runs but one."""
    found = live.data(1, "doctor", *arguments)
    assert found["not_examined"] == []
    return [each["what"] for each in found["findings"] if not each["what"].startswith("no inventory")]


def unit_id(engine: Engine, kind: UnitType, name: str) -> str:
    (found,) = (
        unit.id for unit in engine.queries.scheduling_policy_units() if (unit.type, unit.name) == (kind, name)
    )
    return found


def policy_id(engine: Engine, name: str = "ovirt-placement") -> str:
    (found,) = (policy.id for policy in engine.queries.scheduling_policies() if policy.name == name)
    return found


def test_all_is_well_after_setup_with_inventory_and_proxy(starting: Starting, proxy: str) -> None:
    with starting(RULED) as live:
        live.run(0, "setup", "--cluster", "blue")
        with running_service(live.config):
            out, _ = live.run(0, "doctor", "--proxy", proxy)
            assert out == "All is well.\n"
            assert live.data(0, "doctor") == {"findings": [], "not_examined": []}


def test_each_finding_says_what_to_do(starting: Starting) -> None:
    with starting() as live:
        out, _ = live.run(1, "doctor")
    what, remedy = out.splitlines()
    assert what.startswith("- no inventory publishes to ")
    assert remedy.startswith("  -> systemctl enable --now ovirt-placement-inventory")


def test_external_scheduler_that_is_off(starting: Starting) -> None:
    with starting(proxy=None) as live:
        (what,) = findings(live)
    assert what.startswith("the engine knows none of our policy units: its external scheduler is off")


def test_proxy_that_was_away_when_the_engine_started(starting: Starting) -> None:
    with refusing_port() as port, starting(proxy=f"http://127.0.0.1:{port}/") as live:
        unknown, lately = findings(live)
    assert unknown.startswith("the engine knows none of our policy units: it could not reach the proxy at ")
    assert lately.startswith("the engine could not reach the proxy at ")


def test_units_that_are_disabled(starting: Starting) -> None:
    ours = Units(
        filters=("AffinityFilter", "HostAffinityFilter"),
        weights={"SoftAffinityWeight": 1, "HostAffinityWeight": 1, "HaReservationWeight": 1},
        balance="HaReservationBalance",
    )
    state = snapshot(cluster("c1", scheduling_policy=ours))
    with refusing_port() as port, starting(state, proxy=f"http://127.0.0.1:{port}/") as live:
        disabled = findings(live)[0]
    assert disabled.startswith(
        "the engine has disabled all of our policy units: it could not reach the proxy"
    )


def test_some_units_unknown_and_some_disabled(starting: Starting, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    plugins = Path(__file__).parents[3] / "plugins"
    (folder / "affinity.py").write_bytes((plugins / "affinity.py").read_bytes())
    state = snapshot(cluster("c1", scheduling_policy=Units(filters=("HostAffinityFilter",))))
    with proxy_url(os.environ, folder) as url, starting(state, proxy=url) as live:
        unknown, disabled, *_ = findings(live)
        assert unknown == (
            "the engine does not know these policy units:"
            " HostAffinityWeight, HaReservationWeight, HaReservationBalance"
        )
        assert disabled == (
            "the engine has disabled policy units that the proxy did not offer: HostAffinityFilter"
        )
        assert any(
            what.startswith(f"the proxy at {url} does not offer: ") for what in findings(live, "--proxy", url)
        )


def test_proxy_that_is_away_or_no_proxy(starting: Starting, proxy: str) -> None:
    with starting() as live:
        with refusing_port() as port:
            (what,) = findings(live, "--proxy", f"http://127.0.0.1:{port}/")
        assert what.startswith(f"the proxy at http://127.0.0.1:{port}/ does not answer as a scheduler proxy")
        (what,) = findings(live, "--proxy", live.server.url)
        assert "does not answer as a scheduler proxy" in what
        (what,) = findings(live, "--proxy", "localhost")
        assert "does not answer as a scheduler proxy" in what


def test_proxy_whose_units_changed_since_the_engine_started(starting: Starting, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    for file in (Path(__file__).parents[3] / "plugins").glob("*.py"):
        text = file.read_text().replace("affinity_missing_unit", "AffinityFilter_Lacking")
        (folder / file.name).write_text(text)
    (folder / "rack.py").write_text(
        "class Rack:\n    def do_filter(self, hosts, vm, args):\n        print(hosts)\n"
    )
    with starting() as live, proxy_url(os.environ, folder) as url:
        found = findings(live, "--proxy", url)
    changed, new = sorted(found)
    assert changed == (
        "AffinityFilter has other properties in the engine than in the proxy:"
        " AffinityFilter_Lacking, affinity_missing_unit"
    )
    assert new == "the proxy offers Rack, and the engine does not know it"


def test_rules_that_the_policy_has_no_unit_for(starting: Starting) -> None:
    """Hard rules by a filter, soft ones and HA by a weight; a factor of 0 weighs nothing."""
    with starting(RULED) as live:
        assert findings(live) == []  # the engine's own units of policy none look at all of them
        live.run(0, "setup", "--cluster", "blue", "--factor", "SoftAffinityWeight=0")
        (what,) = findings(live)
        assert what == (
            "cluster blue: soft rules of the groups near mean nothing when VMs are placed:"
            " its policy ovirt-placement has SoftAffinityWeight with factor 0"
        )
        policy = policy_id(live.engine)
        for kind, name in (
            (UnitType.FILTER, "AffinityFilter"),
            (UnitType.FILTER, "VmAffinityGroups"),
            (UnitType.FILTER, "HostAffinityFilter"),
            (UnitType.FILTER, "VmToHostsAffinityGroups"),
            (UnitType.WEIGHT, "HaReservationWeight"),
        ):
            live.engine.policies.remove_unit(policy, unit_id(live.engine, kind, name))
        assert [what.partition(" when VMs")[0] for what in findings(live)] == [
            "cluster blue: hard rules of the groups tied mean nothing",
            "cluster blue: hard rules of the groups tied mean nothing",
            "cluster blue: soft rules of the groups near mean nothing",
            "cluster blue: HA reservation means nothing",
        ]


def test_rule_whose_unit_is_disabled(starting: Starting) -> None:
    units = Units(weights={"SoftAffinityWeight": 5})
    ruled = snapshot(
        cluster("c1", name="blue", scheduling_policy=units, policy={"vm_affinity_weight": 0}),
        *(part for part in (*RULED.hosts, *RULED.vms, *RULED.affinity_groups)),
    )
    with refusing_port() as port, starting(ruled, proxy=f"http://127.0.0.1:{port}/") as live:
        assert findings(live)[-1].endswith(
            "the engine has disabled SoftAffinityWeight of its policy blue-placement"
        )


def test_groups_that_ask_for_nothing_need_no_unit(starting: Starting) -> None:
    """Of a soft group with one member of its own cluster, and a host rule without hosts."""
    state = snapshot(
        cluster("c1", name="blue", policy={"vm_affinity_weight": 0, "vm_to_host_weight": 0}),
        cluster("c2", name="red"),
        vm("v1", cluster="c1"),
        vm("v2", cluster="c2"),
        label("l", "v2"),
        group("g", SOFT_TOGETHER, "v1", cluster="c1", vm_labels=("l",), hosts_rule=SOFT_TOGETHER),
    )
    with starting(state) as live:
        assert findings(live) == []


def test_placement_keys_that_the_policy_has_no_units_for(starting: Starting, tmp_path: Path) -> None:
    key_units = Units(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 0})
    state = snapshot(
        cluster("c1", name="blue", scheduling_policy=key_units),
        cluster("c2", name="red"),
        host("h1", cluster="c1"),
    )
    with starting(state, proxy=None) as live:
        keys = KeyStore(f"sqlite:///{tmp_path}/store.db")
        key = PlacementKey(level="node", resource="h1", key_class="system", name="ssd", value=1.0)
        keys.change([key], set_by="me")
        keys.close()
        about = [what for what in findings(live) if what.startswith("cluster ")]
    (what,) = about
    assert what.startswith("cluster blue: not all of its placement keys count")
    assert what.endswith("has no PlacementKeyWeight in effect")


def test_event_tells_the_engine_once_a_day(starting: Starting) -> None:
    def told(engine: Engine) -> list[tuple[str, str, str | None]]:
        return [
            (event.severity, event.description, event.cluster.id if event.cluster else None)
            for event in engine.queries.events()
            if event.origin == "ovirt-placement"
        ]

    with starting(RULED, clock=datetime.now(UTC)) as live:
        live.run(0, "setup", "--cluster", "blue", "--factor", "SoftAffinityWeight=0")
        findings(live)
        assert told(live.engine) == []
        findings(live, "--event")
        ((severity, text, cluster_id),) = told(live.engine)
        assert (severity, cluster_id) == ("warning", "c1")
        assert text.startswith("cluster blue: soft rules of the groups near mean nothing")
        (event,) = (event for event in live.engine.queries.events() if event.origin == "ovirt-placement")
        findings(live, "--event")
        live.engine.events.remove(event.id)
        findings(live, "--event")  # nor again after it was dismissed
        assert told(live.engine) == []
        live.engine.advance(24 * 3600)
        assert any("the engine's clock is" in what for what in findings(live, "--event"))
        assert len(told(live.engine)) == 1


def test_who_may_not_add_events_is_told_so(starting: Starting) -> None:
    users = {**default_users("password"), "reader@internal": User(password="password", admin=True)}
    ruled = snapshot(cluster("c1", name="blue", policy={"vm_affinity_weight": 0}), *RULED.vms, *RULED.hosts,
                     *RULED.affinity_groups)  # fmt: skip
    with starting(ruled, users=users, username="reader@internal") as live:
        assert any("needs the permit inject_external_events" in what for what in findings(live, "--event"))


def test_our_filters_without_the_engines_beside_them(starting: Starting) -> None:
    with starting() as live:
        live.run(0, "setup", "--cluster", "blue")
        live.engine.policies.remove_unit(
            policy_id(live.engine), unit_id(live.engine, UnitType.FILTER, "VmAffinityGroups")
        )
        (what,) = findings(live)
    assert "has AffinityFilter without the engine's filter VmAffinityGroups beside it" in what


def without_balance(engine: Engine) -> None:
    policy = policy_id(engine)
    engine.policies.remove_unit(policy, unit_id(engine, UnitType.LOAD_BALANCING, "HaReservationBalance"))


def weighing_twice(engine: Engine) -> None:
    engine.policies.add_weight(policy_id(engine), unit_id(engine, UnitType.WEIGHT, "VmAffinityGroups"))


def spoilt(engine: Engine) -> None:
    with pytest.raises(Exception, match="more than once"):
        engine.policies.add_filter(policy_id(engine), unit_id(engine, UnitType.FILTER, "Memory"))


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (without_balance, "the policy ovirt-placement has no balance: that stops the load balancing of all"),
        (weighing_twice, "weighs the same rules twice, by SoftAffinityWeight and by the engine's VmAffinity"),
        (spoilt, "the engine holds Memory twice in the policy ovirt-placement, and refuses every change"),
    ],
)
def test_traps_of_the_engine_in_a_policy(
    starting: Starting, spoil: Callable[[Engine], None], what: str
) -> None:
    with starting() as live:
        live.run(0, "setup", "--cluster", "blue")
        spoil(live.engine)
        (found,) = findings(live)
    assert what in found


def test_parameters_that_no_unit_knows_any_more(starting: Starting) -> None:
    state = snapshot(cluster("c1", name="blue", scheduling_properties={"Old_Key": "1"}))
    with starting(state) as live:
        (what,) = findings(live)
    assert what.startswith("cluster blue has parameters that no unit of its policy none knows: Old_Key;")


@pytest.mark.parametrize(("seconds", "word"), [(3600, "ahead of"), (-3600, "behind")])
def test_clock_that_differs(starting: Starting, seconds: int, word: str) -> None:
    with starting(clock=datetime.now(UTC) + timedelta(seconds=seconds)) as live:
        (what,) = findings(live)
    assert what.startswith("the engine's clock is 3")
    assert f"s {word} this one" in what


def test_engine_that_is_too_old(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "VERSION", ("4", "3", "10", "ovirt-engine-4.3.10"))
    with starting() as live:
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
        live.config.write_text(live.config.read_text().replace('enforce"', 'dry_run"'))
        assert [what for what in findings(live) if "clock" not in what] == []


@pytest.mark.parametrize(("permits", "found"), [((), 1), ((Permit.MIGRATE_VM,), 0)])
def test_permit_that_the_enforcer_lacks(starting: Starting, permits: tuple[Permit, ...], found: int) -> None:
    users = {"me@internal": User(password="password", admin=True, permits=frozenset(permits))}
    with starting(users=users, username="me@internal", more=ENFORCE) as live:
        whats = findings(live)
    assert len(whats) == found
    assert all("me@internal itself has no permit migrate_vm on cluster blue" in what for what in whats)


def test_user_who_may_not_read(starting: Starting) -> None:
    with starting(username="user@internal") as live:
        (what,) = findings(live)
    assert "ReadOnlyAdmin" in what


def test_engine_that_is_away_is_a_finding(starting: Starting) -> None:
    with starting() as live:
        live.server.close()
        (what,) = findings(live)
    assert "the engine does not answer" in what


def test_configuration_at_fault_is_status_2(starting: Starting) -> None:
    with starting() as live:
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
    with starting() as live:
        live.config.write_text(live.config.read_text().replace(f"sqlite:///{tmp_path}/store.db", url))
        found = live.data(1, "doctor")
    whats = [each["what"] for each in found["findings"]] + found["not_examined"]
    assert any(what in each for each in whats)


def test_store_of_a_newer_release_and_one_that_is_well(starting: Starting, tmp_path: Path) -> None:
    with starting() as live:
        store = Store(f"sqlite:///{tmp_path}/store.db")
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
    monkeypatch.setattr(doctor_machine, "_STALE_SECONDS", 1.0)
    with starting() as live, running_service(live.config):
        live.server.close()
        while (found := publication.read(tmp_path / "run")) is not None and found.age_seconds <= 1.0:
            time.sleep(0.05)  # what passes is the time that it has not read the engine
        whats = [each["what"] for each in live.data(1, "doctor")["findings"]]
    assert any("the inventory's last snapshot is" in what for what in whats)
