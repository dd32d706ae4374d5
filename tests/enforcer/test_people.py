"""Who did it: every act of a person is recorded with who, where, when and what came of it."""

import getpass
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.cli.main import main as placement
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.maintenance import MaintenanceRequest, MaintenanceStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.launching import At, Points, watch_requests
from tests.enforcer.service.test_process import running
from tests.placement.cli.documents import defined
from tests.processes import PROCESSES
from tests.proxy.running import eventually
from tests.scenarios.stage import START

STATE = snapshot(
    cluster(CLUSTER, name="blue"),
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("v1", "h1", name="web1"),
    vm("v2", "h2", name="web2"),
    vm("v3", "h2", name="calm"),
    group("g1", TOGETHER, "v1 v2", name="web"),
)
#: The process that acts is this one.
WHO = {"login": getpass.getuser(), "machine": socket.gethostname()}
Ask = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[Server]:
    found = serve(Engine.from_snapshot(STATE, clock=START))
    yield found
    found.close()


@pytest.fixture
def file(tmp_path: Path, server: Server) -> Path:
    audit = f'[enforcer]\naudit_log = "{tmp_path}/audit.jsonl"\ninterval_seconds = 0.2\nlease_seconds = 0.6\n'
    return write_configuration(tmp_path, server.api_url, more=audit)


@pytest.fixture
def acts(file: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """What `history --json` has of people, each once its form is right."""

    def read() -> list[dict[str, Any]]:
        capsys.readouterr()
        assert enforcer(["history", "--who", "--json", "--config", str(file)]) == 0
        found = defined(capsys.readouterr().out, "History")
        return [one for one in found if "login" in one]

    return read


@pytest.mark.system
def test_every_act_is_recorded_with_who_where_and_what(
    file: Path, acts: Callable[[], list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    to = ("--config", str(file))
    assert enforcer(["pause", "--cluster", "blue", "--hours", "2", "--reason", "storage", *to]) == 0
    assert enforcer(["resume", "--cluster", "blue", *to]) == 0
    assert placement(["keys", "set", "A", "2", "1.5", "--on", "vm", "web1", *to]) == 0
    assert placement(["keys", "set", "A", "2", "1.5", "--on", "vm", "web1", *to]) == 0
    assert placement(["keys", "unset", "A", "--on", "vm", "web1", *to]) == 0
    assert placement(["groups", "add", "new", "--cluster", "blue", "--vm", "calm", *to]) == 0
    assert placement(["groups", "edit", "new", "--add-vm", "web1", "--remove-vm", "calm", *to]) == 0
    assert placement(["groups", "edit", "new", "--priority", "1", *to]) == 0
    assert placement(["groups", "remove", "new", *to]) == 0
    found = acts()
    said = [one["sentence"].removeprefix(f"{WHO['login']} on {WHO['machine']} ") for one in found]
    assert said == [
        "paused migrations in cluster blue: for 2 h; storage",
        "resumed migrations in cluster blue",
        "changed placement keys: set server web1: system key A to 2 (weight 1.5)",
        # The second setting has changed nothing.
        "changed placement keys: removed server web1: system key A",
        "(as admin@internal) added affinity group new in cluster blue",
        "(as admin@internal) changed affinity group new in cluster blue: VM web1 added; VM calm removed",
        # A priority that it has is no change.
        "(as admin@internal) removed affinity group new in cluster blue",
    ]
    assert all({name: one[name] for name in WHO} == WHO and one["state"] == "done" for one in found)
    moments = [one["created"] for one in found]
    assert moments == sorted(moments)
    assert abs(moments[-1] - time.time()) < 600
    capsys.readouterr()
    assert enforcer(["history", "--who", *to]) == 0
    assert [line.split("  ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        one["sentence"] for one in found
    ]


def test_what_becomes_of_a_maintenance_run_is_recorded(
    file: Path, tmp_path: Path, acts: Callable[[], list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    to = ("--config", str(file))
    runs = MaintenanceStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    runs.request("r1", (CLUSTER, "blue"), [("h1", "alpha")], MaintenanceRequest(), requested_by="ada")
    runs.close()
    for order, status in (("resume", 2), ("pause", 0), ("pause", 2), ("resume", 0), ("stop", 0)):
        assert enforcer(["maintenance", order, *to]) == status
    found = acts()
    assert [one["sentence"].split(" on ", 1)[1].partition(" ")[2] for one in found] == [
        "requested maintenance run r1 in cluster blue: alpha",
        # What is refused changes nothing.
        "paused maintenance run r1 in cluster blue",
        "resumed maintenance run r1 in cluster blue",
        "stopped maintenance run r1 in cluster blue",
    ]
    assert all({name: one[name] for name in WHO} == WHO for one in found[1:])


def test_a_store_that_is_made_again_or_restored_has_a_record_of_who_did_it(
    file: Path, tmp_path: Path, acts: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    to = ("--config", str(file))
    assert enforcer(["pause", *to]) == 0
    assert placement(["store", "backup", str(tmp_path / "saved"), *to]) == 0
    for lost in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / lost).unlink(missing_ok=True)
    assert placement(["store", "init", *to]) == 0
    assert placement(["store", "init", *to]) == 0  # it is there: nothing is done
    (made,) = acts()
    assert made["kind"] == "store_init"
    assert made["sentence"] == f"{WHO['login']} on {WHO['machine']} made the lost store again, empty"
    # A record of that alone is nothing that a restoration would lose.
    assert placement(["store", "restore", str(tmp_path / "saved"), *to]) == 0
    paused, restored = acts()
    assert (paused["kind"], restored["kind"]) == ("pause", "store_restore")
    assert restored["sentence"].endswith(f"restored the store from {tmp_path}/saved")
    assert placement(["store", "restore", str(tmp_path / "saved"), *to]) == 2  # it holds a pause


def kill_before(request: str, arguments: list[str], folder: Path) -> None:
    """Be `ovirt-placement`, which is killed before it sends this request."""
    watch_requests(Points(folder / "points", At(f"before {request}", 1, signal.SIGKILL)))
    sys.exit(placement(arguments))


@pytest.mark.system
def test_a_command_that_is_killed_while_it_acts_is_recorded_as_begun(
    file: Path, tmp_path: Path, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    arguments = ["groups", "remove", "web", "--config", str(file)]
    request = f"DELETE /clusters/{CLUSTER}/affinitygroups/g1"
    process = PROCESSES.Process(target=kill_before, args=(request, arguments, tmp_path))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    (found,) = acts()
    assert (found["kind"], found["state"]) == ("group_remove", "begun")
    assert found["sentence"].endswith(
        "removed affinity group web in cluster blue (begun; its end is not recorded)"
    )


def test_what_the_engine_refuses_is_recorded_as_failed(
    file: Path, server: Server, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    server.disturbances.add(Disturbance(method="DELETE", status=409))
    assert placement(["groups", "remove", "web", "--config", str(file)]) == 2
    (found,) = acts()
    assert found["state"] == "failed"
    assert found["error"]
    assert found["sentence"].endswith(f"(failed: {found['error']})")


def test_a_store_that_is_away_keeps_nobody_from_acting_and_a_line_says_what_is_not_recorded(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = write_configuration(tmp_path, server.api_url, store_url=f"sqlite:///{tmp_path}/none/store.db")
    assert placement(["groups", "remove", "web", "--config", str(lost)]) == 0
    out, err = capsys.readouterr()
    assert out == "removed affinity group web (g1)\n"
    assert err.startswith("warning: it is not recorded who does this: store sqlite:///")
    assert err.count("\n") == 1


@pytest.mark.system
def test_of_two_who_approve_at_once_one_is_recorded(
    file: Path, tmp_path: Path, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    plan = make_plan(STATE, CLUSTER)
    document = plan_record(plan, STATE)
    history = HistoryStore(url, engine="default", patience_seconds=5)
    history.record_plan(plan.id, CLUSTER, {"cluster": {"id": CLUSTER, "name": "blue"}})
    approvals = ApprovalStore(url, engine="default", patience_seconds=5)
    moves = tuple(ApprovedMove(step.vms, step.sources, step.target) for step in plan.steps)
    assert approvals.offer(CLUSTER, plan.id, moves, text(document))
    history.close()
    approvals.close()
    command = [
        str(Path(sys.executable).with_name("ovirt-enforcer")),
        "approve",
        plan.id,
        "--config",
        str(file),
    ]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    assert sorted(one.wait(60) for one in both) == [0, 2]
    for one in both:
        one.communicate()
    (found,) = acts()
    assert found["sentence"].endswith(f"approved plan {plan.id} in cluster blue")


@pytest.mark.system
def test_the_enforcer_writes_them_to_its_log_and_to_the_audit_log_once(file: Path, tmp_path: Path) -> None:
    to = ("--config", str(file))
    assert enforcer(["pause", "--reason", "before it runs", *to]) == 0

    def lines() -> list[dict[str, Any]]:
        log = tmp_path / "audit.jsonl"
        read = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in read if line["kind"] == "user_action"]

    with running(file) as process:
        assert enforcer(["resume", *to]) == 0
        eventually(lambda: len(lines()) == 2)
        process.end()
        assert process.log.count("paused migrations in all clusters: until resumed; before it runs") == 1
    with running(file) as process:
        leases = LeaseStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
        eventually(lambda: (lease := leases.read()) is not None and lease.epoch == 2)
        leases.close()
        assert enforcer(["pause", *to]) == 0
        eventually(lambda: len(lines()) == 3)
        process.end()
    assert [line["action"] for line in lines()] == ["pause", "resume", "pause"]
    assert [line["id"] for line in lines()] == [1, 2, 3]
    assert all({name: line[name] for name in WHO} == WHO for line in lines())


@pytest.mark.parametrize(
    ("kernel", "sudo", "name"),
    [
        ("0", "ann", "root"),
        ("4294967295", "ann", "ann"),
        ("4294967295", "", "root"),
        ("3999999999", "ann", "ann"),  # of a machine around this one
        ("", "", "root"),
    ],
)
@pytest.mark.skipif(getpass.getuser() != "root", reason="only root is believed whom sudo was called by")
def test_the_person_is_the_one_who_logged_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, sudo: str, name: str
) -> None:
    from ovirt_placement.cli import changes

    (tmp_path / "loginuid").write_text(kernel)
    monkeypatch.setattr(changes, "_LOGIN", tmp_path / "loginuid")
    monkeypatch.setenv("SUDO_USER", sudo)
    assert changes.login_name() == name
