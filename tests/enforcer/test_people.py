"""Who did it: every act of a person is recorded with who, where, when and what came of it."""

import getpass
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.cli.main import main as placement
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.maintenance import MaintenanceStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask
from tests.enforcer.launching import At, Points, watch_requests
from tests.enforcer.service.test_process import running
from tests.placement.store.conftest import Opening
from tests.processes import PROCESSES
from tests.proxy.running import eventually
from tests.stored import run_of

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
Acts = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def file(tmp_path: Path, server: Server) -> Path:
    audit = f'[enforcer]\naudit_log = "{tmp_path}/audit.jsonl"\ninterval_seconds = 0.2\nlease_seconds = 0.6\n'
    return write_configuration(tmp_path, server.api_url, more=audit)


@pytest.fixture
def acts(file: Path, ask: Ask) -> Acts:
    """What `history --json` has of people, each once its form is right."""
    return lambda: [one for one in ask("history --who --json").document("History") if "login" in one]


@pytest.mark.system
def test_every_act_is_recorded_with_who_where_and_what(acts: Acts, ask: Ask) -> None:
    assert ask("pause --cluster blue --hours 2 --reason storage").status == 0
    assert ask("resume --cluster blue").status == 0
    for line in (
        "keys set A 2 1.5 --on vm web1",
        "keys set A 2 1.5 --on vm web1",  # changes nothing
        "keys unset A --on vm web1",
        "groups add new --cluster blue --vm calm",
        "groups edit new --add-vm web1 --remove-vm calm",
        "groups edit new --priority 1",  # a priority that it has
        "groups remove new",
    ):
        assert ask(line, of=placement).status == 0, line
    found = acts()
    said = [one["sentence"].removeprefix(f"{WHO['login']} on {WHO['machine']} ") for one in found]
    assert said == [
        "paused migrations in cluster blue: for 2 h; storage",
        "resumed migrations in cluster blue",
        "changed placement keys: set server web1: system key A to 2 (weight 1.5)",
        "changed placement keys: removed server web1: system key A",
        "(as admin@internal) added affinity group new in cluster blue",
        "(as admin@internal) changed affinity group new in cluster blue: VM web1 added; VM calm removed",
        "(as admin@internal) removed affinity group new in cluster blue",
    ]
    assert all({name: one[name] for name in WHO} == WHO and one["state"] == "done" for one in found)
    moments = [one["created"] for one in found]
    assert moments == sorted(moments)
    assert abs(moments[-1] - time.time()) < 600
    lines = ask("history --who").out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [one["sentence"] for one in found]


def test_what_becomes_of_a_maintenance_run_is_recorded(opening: Opening, acts: Acts, ask: Ask) -> None:
    opening(MaintenanceStore).request(run_of("alpha", id="r1", cluster_name="blue"))
    for order, status in (("resume", 2), ("pause", 0), ("pause", 2), ("resume", 0), ("stop", 0)):
        assert ask(f"maintenance {order}").status == status
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
    acts: Acts, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    saved = tmp_path / "saved"
    assert ask("pause").status == 0
    assert ask(f"store backup {saved}", of=placement).status == 0
    for lost in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / lost).unlink(missing_ok=True)
    assert ask("store init", of=placement).status == 0
    assert ask("store init", of=placement).status == 0  # it is there: nothing is done
    (made,) = acts()
    assert made["kind"] == "store_init"
    assert made["sentence"] == f"{WHO['login']} on {WHO['machine']} made the lost store again, empty"
    # A record of that alone is nothing that a restoration would lose.
    assert ask(f"store restore {saved}", of=placement).status == 0
    paused, restored = acts()
    assert (paused["kind"], restored["kind"]) == ("pause", "store_restore")
    assert restored["sentence"].endswith(f"restored the store from {saved}")
    assert ask(f"store restore {saved}", of=placement).status == 2  # it holds a pause


def kill_before(request: str, arguments: list[str], folder: Path) -> None:
    """Be `ovirt-placement`, which is killed before it sends this request."""
    watch_requests(Points(folder / "points", At(f"before {request}", 1, signal.SIGKILL)))
    sys.exit(placement(arguments))


@pytest.mark.system
def test_a_command_that_is_killed_while_it_acts_is_recorded_as_begun(
    file: Path, tmp_path: Path, acts: Acts
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


def test_what_the_engine_refuses_is_recorded_as_failed(server: Server, acts: Acts, ask: Ask) -> None:
    server.disturbances.add(Disturbance(method="DELETE", status=409))
    assert ask("groups remove web", of=placement).status == 2
    (found,) = acts()
    assert (found["state"], found["error"] != "") == ("failed", True)
    assert found["sentence"].endswith(f"(failed: {found['error']})")


def test_a_store_that_is_away_keeps_nobody_from_acting_and_a_line_says_what_is_not_recorded(
    tmp_path: Path, server: Server, ask: Ask
) -> None:
    write_configuration(tmp_path, server.api_url, store_url=f"sqlite:///{tmp_path}/none/store.db")
    status, out, err = ask("groups remove web", of=placement)
    assert (status, out) == (0, "removed affinity group web (g1)\n")
    assert err.startswith("warning: it is not recorded who does this: store sqlite:///")
    assert err.count("\n") == 1


@pytest.mark.system
def test_of_two_who_approve_at_once_one_is_recorded(file: Path, opening: Opening, acts: Acts) -> None:
    plan = make_plan(STATE, CLUSTER)
    opening(HistoryStore).record_plan(plan.id, CLUSTER, {"cluster": {"id": CLUSTER, "name": "blue"}})
    moves = tuple(ApprovedMove(step.vms, step.sources, step.target) for step in plan.steps)
    assert opening(ApprovalStore).offer(CLUSTER, plan.id, moves, text(plan_record(plan, STATE)))
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
def test_the_enforcer_writes_them_to_its_log_and_to_the_audit_log_once(
    file: Path, opening: Opening, ask: Ask
) -> None:
    assert ask("pause --reason 'before it runs'").status == 0

    def lines() -> list[dict[str, Any]]:
        log = file.with_name("audit.jsonl")
        read = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in read if line["kind"] == "user_action"]

    with running(file) as process:
        assert ask("resume").status == 0
        eventually(lambda: len(lines()) == 2)
        process.end()
        assert process.log.count("paused migrations in all clusters: until resumed; before it runs") == 1
    leases = opening(LeaseStore)
    with running(file) as process:
        eventually(lambda: (lease := leases.read()) is not None and lease.epoch == 2)
        assert ask("pause").status == 0
        eventually(lambda: len(lines()) == 3)
        process.end()
    assert [(line["action"], line["id"]) for line in lines()] == [("pause", 1), ("resume", 2), ("pause", 3)]
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
