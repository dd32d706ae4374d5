"""What people ask and order, as the enforcer that leads would now; each act is recorded with who did it."""

import getpass
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.memory import Stores, current_gates, read_engine_state
from ovirt_enforcer.orders import check_acts, check_running
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.cli.main import main as placement
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.maintenance import MaintenanceStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, PauseStore
from ovirt_placement.store.sql.connections import Fault
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.actions.bench import bench
from tests.enforcer.conftest import Ask
from tests.enforcer.launching import At, Points, watch_requests
from tests.enforcer.service.test_process import COMMAND, running
from tests.enforcer.stand_ins import lead
from tests.placement.store.conftest import Opening
from tests.processes import PROCESSES
from tests.proxy.running import eventually
from tests.stored import prepared, run_of

TAG = "ovirt-enforcer-exclude"
STATE = snapshot(
    cluster(CLUSTER, name="blue"),
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("v1", "h1", name="web1"),
    vm("v2", "h2", name="web2"),
    vm("v3", "h2", name="calm", tags=(TAG,)),
    group("g1", TOGETHER, "v1 v2", name="web"),
)
OBSERVES = 'ovirt-enforcer is in observe mode: set mode = "approve" in [enforcer], and restart it'


def written(folder: Path, more: str = "") -> Config:
    return configuration.load(write_configuration(folder, "http://127.0.0.1:9/ovirt-engine/api", more=more))


def refusal(folder: Path, mode: str | None) -> str | None:
    """Why orders are refused on a machine whose file says this; None if they are taken."""
    config = written(folder, "" if mode is None else f'[enforcer]\nmode = "{mode}"\n')
    try:
        check_acts(config, Mode.APPROVE)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("mode", "found"), [(None, OBSERVES), ("observe", OBSERVES), ("approve", None)])
def test_where_none_leads_the_file_counts(tmp_path: Path, mode: str | None, found: str | None) -> None:
    assert refusal(tmp_path, mode) == found


@pytest.mark.parametrize("mode", [None, "observe", "enforce"])
def test_where_one_leads_its_mode_counts(tmp_path: Path, mode: str | None) -> None:
    lead(tmp_path, EnforcerSettings(mode=Mode.OBSERVE))
    assert refusal(tmp_path, mode) == OBSERVES
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    assert refusal(tmp_path, mode) is None


def test_where_one_led_that_cannot_write_any_more_that_is_said(
    tmp_path: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = written(tmp_path)
    with pytest.raises(UserError, match="no enforcer runs for engine default: start it"):
        check_running(config)
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    check_running(config)
    opening(LeaseStore).release(1)
    full = Fault("no room is left on its file system", "make room there")
    monkeypatch.setattr("ovirt_placement.store.sql.connections.find_file_system_fault", lambda path: full)
    with pytest.raises(UserError, match="none leads and cannot write the store: no room is left") as refused:
        check_running(config)
    assert "no enforcer runs" not in str(refused.value)


def test_a_target_that_was_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as made:
        made.engine.faults.expect(MigrationFault(refuse=True), identity="a")
        with made.enforcing() as daemon:
            made.run(daemon, 2.0)
        found = read_engine_state(made.config, 60.0)
    assert found.holding.left_out.keys() == {("a", "h2")}
    assert found.holding.left_out["a", "h2"].startswith("the engine refused to move it to h2: ")


@pytest.mark.parametrize(
    ("mode", "paused", "why"),
    [("enforce", True, "storage"), ("observe", False, "observe"), ("enforce", False, "")],
)
def test_what_holds_a_plan_back_is_known_with_it(
    tmp_path: Path, opening: Opening, mode: str, paused: bool, why: str
) -> None:
    if paused:
        pause = {"cluster_name": "blue", "reason": "storage", "set_by": "root"}
        opening(PauseStore).pause(CLUSTER, seconds=None, **pause)
    with bench(tmp_path, settings={"mode": mode}) as made:
        found = read_engine_state(made.config, 60.0)
    plan = make_plan(found.snapshot, CLUSTER)
    assert plan.steps
    assert why in (found.not_now(plan) or "")
    assert bool(why) == (found.not_now(plan) is not None)
    assert found.not_now(replace(plan, steps=())) is None


@pytest.fixture
def gates(server: Server, tmp_path: Path) -> Callable[[], Gates]:
    file = write_configuration(tmp_path, server.api_url, more='[enforcer]\nexclude_vms = ["web1"]')
    asked = configuration.load(file, {"OVIRT_PASSWORD": "password"})

    def now() -> Gates:
        with EngineConnection(asked.engine) as connection, closing(Stores(asked, create=False)) as stores:
            return current_gates(asked.section("enforcer", EnforcerSettings), connection, stores)

    return now


EXCLUDED = {"v3": f"calm bears the tag {TAG}", "v1": "web1 is among exclude_vms"}


def test_without_a_store_the_configuration_and_the_tags_count(
    gates: Callable[[], Gates], tmp_path: Path
) -> None:
    assert gates().frozen(STATE) == EXCLUDED
    assert not (tmp_path / "store.db").exists()


def test_with_one_what_it_remembers_counts_too(gates: Callable[[], Gates], opening: Opening) -> None:
    store = opening(Store)
    store.fail(prepared(store, "v2", cluster=CLUSTER, target="h1").id, "it broke")
    remembered = {"v2": "its migration to alpha failed (it broke); the cooldown is 600 s"}
    assert gates().frozen(STATE) == {**EXCLUDED, **remembered}


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


def test_an_act_is_recorded_with_who_where_and_when_unless_it_changes_nothing(acts: Acts, ask: Ask) -> None:
    """In which words, the record of `history --who` in tests/golden holds."""
    for line in (
        *("keys set A 2 1.5 --on vm web1",) * 2,
        "groups add new --cluster blue --vm calm",
        "groups edit new --priority 1",  # a priority that it has
    ):
        assert ask(line, of=placement).status == 0, line
    found = acts()
    assert [(one["kind"], one["state"]) for one in found] == [("keys", "done"), ("group_add", "done")]
    assert all({name: one[name] for name in WHO} == WHO for one in found)
    assert abs(found[0]["created"] - time.time()) < 600


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
    assert (ask("pause").status, ask(f"store backup {saved}", of=placement).status) == (0, 0)
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
    command = [COMMAND, "approve", plan.id, "--config", str(file)]
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
