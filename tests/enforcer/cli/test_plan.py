"""`make-room`, `simulate-policy` and `maintenance plan` as their user meets them."""

from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ovirt_enforcer.cli import maintenance
from ovirt_enforcer.cli.main import main
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.enforcer.maintenance import HostPhase, MaintenanceRun, RunState
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.maintenance.stage import host_of_run, run_of
from tests.placement.cli.documents import defined

GIB = 1024
FULL = snapshot(
    host("h1", name="alpha", free_mb=2 * GIB),
    host("h2", name="beta", free_mb=3 * GIB),
    vm("v1", "h1", name="web1", needs_mb=2 * GIB),
    vm("v2", "h2", name="web2", needs_mb=8 * GIB),
    vm("v3", name="new", needs_mb=4 * GIB),
    vm("v4", name="huge", needs_mb=64 * GIB),
    vm("v5", name="small"),
    group("g1", APART, "v2 v4", name="databases"),
)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


@pytest.fixture
def state(given: Path) -> Path:
    given.write_bytes(state_file.dumps(FULL))
    return given


def test_the_migrations_are_reported(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "new", "--state", str(state)]) == 3
    assert capsys.readouterr().out == (
        "VM new can start on host alpha after 1 migration, no fewer will do:\n"
        "  1. web1 from alpha to beta: makes room for the next steps\n"
    )
    assert main(["make-room", "v3", "--state", str(state), "--json"]) == 3
    said = defined(capsys.readouterr().out, "RoomFound")
    assert (said["vm"]["name"], said["host"]["id"]) == ("new", "h1")


def test_a_vm_that_can_start_needs_none(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "small", "--state", str(state)]) == 0
    assert capsys.readouterr().out == "VM small can start on host beta as things are.\n"


def test_where_nothing_helps_each_host_says_why(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "huge", "--state", str(state)]) == 4
    said = capsys.readouterr().out
    assert said.startswith("No migrations let VM huge start:\n")
    assert "  beta: " in said
    assert "  alpha: " in said


@pytest.mark.parametrize(("vm_name", "mistake"), [("web1", "runs on host alpha"), ("nobody", "nobody")])
def test_mistakes_are_reported_in_a_line(
    state: Path, capsys: pytest.CaptureFixture[str], vm_name: str, mistake: str
) -> None:
    assert main(["make-room", vm_name, "--state", str(state)]) == 2
    said = capsys.readouterr().err
    assert mistake in said
    assert said.count("\n") == 1


PARTS = (
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("a", "h1", name="web"),
    vm("b", "h2", name="db"),
    vm("c", "h1", name="cache"),
    group("g1", TOGETHER, "a b c", name="shop"),
)
ROUND = snapshot(*PARTS, group("g2", APART, "a b", name="parted"))


def simulate(path: Path, state: Snapshot, *arguments: str) -> int:
    path.write_bytes(state_file.dumps(state))
    return main(["simulate-policy", "--state", str(path), *arguments])


def test_as_data(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, ROUND, "--json") == 3
    (found,) = defined(capsys.readouterr().out, "Simulations")["clusters"]
    assert (found["cluster"], found["outcome"], found["migrations"], found["balance"]) == (
        {"id": CLUSTER, "name": CLUSTER},
        "loop",
        0,
        None,
    )
    assert found["loop"]["groups"] == [{"id": "g1", "name": "shop"}, {"id": "g2", "name": "parted"}]
    assert found["loop"]["groups_needed"] is True
    assert found["loop"]["migrations"][0] == {
        "vm": {"id": "c", "name": "cache"},
        "from": {"id": "h1", "name": "alpha"},
        "to": {"id": "h2", "name": "beta"},
        "by": "engine",
        "units": ["AffinityFilter"],
        "groups": [{"id": "g1", "name": "shop"}],
        "because": "affinity group shop is violated (hard: together)",
    }


def test_what_settles(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, snapshot(*PARTS)) == 0
    assert capsys.readouterr().out.endswith(": settles after 1 migration.\n")


def test_one_cluster_of_several(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = snapshot(cluster(), cluster("c2", name="other"), *ROUND.hosts, *ROUND.vms, *ROUND.affinity_groups)
    assert simulate(given, state, "--cluster", "other") == 0
    assert capsys.readouterr().out.startswith("Cluster other ")


def test_want_of_time_is_said(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, ROUND, "--deadline", "0.000001") == 4
    assert "not settled after 0 migrations; there was no more time" in capsys.readouterr().out


BLUE = snapshot(
    host("h1", name="alpha", memory_mb=8 * GIB, free_mb=6 * GIB),
    host("h2", name="beta", memory_mb=8 * GIB, free_mb=7 * GIB),
    host("h3", name="gamma", memory_mb=8 * GIB, free_mb=7 * GIB, spm=True),
    vm("v1", "h1", name="web1", memory_mb=900),
    vm("v2", "h1", name="web2", memory_mb=900),
    vm("v3", "h2", name="web3", memory_mb=900),
    vm("v4", "h3", name="db", memory_mb=900, migratable=False),
)
PLAN = ["maintenance", "plan"]


@pytest.fixture
def blue(given: Path) -> str:
    given.write_bytes(state_file.dumps(BLUE))
    return str(given)


def test_rounds_moves_and_what_is_in_the_way(blue: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--cluster", "cluster1", "--state", blue]) == 4
    assert capsys.readouterr().out == (
        "Maintenance in cluster cluster1: 2 hosts in 2 rounds, 3 migrations"
        " (proven: no plan has fewer rounds, nor as many and fewer migrations), about 1.0 h.\n"
        "  Round 1: alpha (2 migrations, about 18 s; then out for 30 min)\n"
        "    1. web1 from alpha to gamma: off a host that is to be empty\n"
        "    2. web2 from alpha to gamma: off a host that is to be empty\n"
        "  Round 2: beta (1 migration, about 18 s; then out for 30 min)\n"
        "    1. web3 from beta to alpha: off a host that is to be empty\n"
        "  No round for gamma:\n"
        "    - db stays where it is: it may not be migrated automatically (pinned, or only its user may)\n"
        "  With --stop db, there is a round for gamma as well.\n"
    )


def test_consent_to_a_stop(blue: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*PLAN, "--cluster", "cluster1", "--stop", "db", "--host-time", "1h"]
    assert main([*given, "--state", blue]) == 0
    said = capsys.readouterr().out
    assert "    stopped meanwhile, as you agreed to: db\n" in said
    assert "then out for 1.0 h)\n" in said


def test_data_meet_the_schema(blue: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "alpha", "--state", blue, "--json"]) == 0
    document = defined(capsys.readouterr().out, "MaintenancePlans")
    (found,) = document["clusters"]
    assert [one["hosts"][0]["name"] for one in found["rounds"]] == ["alpha"]
    assert found["proven"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "name hosts, or a cluster with --cluster"),
        (["alpha", "--cluster", "cluster1"], "name hosts, or a cluster with --cluster and not both"),
        (["alhpa"], 'no host "alhpa"; did you mean "alpha"?'),
        (["alpha", "--stop", "nobody"], 'no VM "nobody"'),
    ],
)
def test_mistakes(blue: str, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, *words, "--state", blue]) == 2
    assert complaint in capsys.readouterr().err


TWO = (host("h1", memory_mb=8 * GIB, free_mb=5 * GIB), host("h2", memory_mb=8 * GIB, free_mb=5 * GIB))
#: One host may fail now; while another is out, none may.
RESERVED = snapshot(cluster(ha_reservation=True), *TWO, vm("v2", "h2", ha=True))
PINNED = snapshot(*TWO, vm("v1", "h1", migratable=False))


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (RESERVED, "while it is out, v2 would not restart if h2 failed"),
        (PINNED, "v1 stays where it is: it may not be migrated automatically"),
    ],
)
def test_the_reason_is_given(
    state: Snapshot, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(serve(Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC)))) as server:
        more = '[enforcer]\nmode = "enforce"\n'
        config = write_configuration(tmp_path, server.api_url, more=more)
        asked = ["h1", "--work", "nothing", "--config", str(config)]
        assert main(["maintenance", "plan", "h1", "--config", str(config)]) == 4
        planned = capsys.readouterr().out
        assert main(["maintenance", "run", *asked]) == 2
        said = capsys.readouterr().err
    assert "no round for h1: " in said
    assert why in said
    reason = said.partition("no round for h1: ")[2].partition("; ovirt-enforcer")[0]
    assert f"    - {reason}\n" in planned


def test_following_a_run_prints_what_changes_and_not_each_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(state: RunState, phase: HostPhase, seconds: float, message: str = "") -> MaintenanceRun:
        host = host_of_run(phase, seconds, name="alpha", message=message)
        return run_of(host, id="r1", cluster_name="blue", state=state, requested_by="root")

    going = [
        run(RunState.RUNNING, HostPhase.DRAINING, seconds, "0 of 2 VMs have left") for seconds in (1, 3, 5)
    ]
    going.append(run(RunState.RUNNING, HostPhase.DRAINING, 7, "1 of 2 VMs has left"))
    looks = iter([*going, run(RunState.DONE, HostPhase.DONE, 0)])
    monkeypatch.setattr(maintenance, "_named", lambda args, run_id: next(looks))
    monkeypatch.setattr(maintenance.time, "sleep", lambda seconds: None)
    assert maintenance._follow(Namespace(json=False), "r1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Maintenance run r1 of cluster blue: running (by root, 1970-01-01 00:00+00:00)",
        "  alpha is being emptied, for 1 s: 0 of 2 VMs have left",
        "  alpha is being emptied, for 7 s: 1 of 2 VMs has left",
        "Maintenance run r1 of cluster blue: done (by root, 1970-01-01 00:00+00:00)",
        "  alpha is done",
    ]
