"""What commands ask the engine for: no more than their answer hangs on, which decides how long they take."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_enforcer.cli.plan import REPAIRS_ALL
from ovirt_placement.cli.main import main
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.inventory.publication import Moments, now
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, state_file
from ovirt_placement.store.keys import KeyStore, Run
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Application
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration, write_password
from tests.kit.served import ServedInventory
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.engine_server import API, PASSWORD, EngineServer, connected, serving
from tests.placement.inventory.running import configured
from tests.placement.model.full_state import full_state
from tests.placement.sockets import refusing_port
from tests.portal import Portal
from tests.processes import completed
from tests.stored import put_keys

STATE = snapshot(
    replace(cluster("c1", name="blue"), ha_reservation=True),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    vm("v1", "h1", name="web", cluster="c1", ha=True),
    vm("v2", "h2", name="cache", cluster="c1"),
    vm("v3", name="db", cluster="c1"),
    group("g1", APART, "v1 v2", cluster="c1", name="apart"),
)


class Asked(list[str]):
    """What the engine was asked to show, by path and what was to be followed."""

    def of(self, start: str) -> list[str]:
        return [one for one in self if one.startswith(start)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found, answer = Asked(), Application._authenticated

    def noting(self: Application, request: Any, path: str) -> Any:
        if request.method == "GET":
            found.append(f"{path} {request.args.get('follow', '')}".strip())
        return answer(self, request, path)

    monkeypatch.setattr(Application, "_authenticated", noting)
    return found


@pytest.fixture
def live(serving: Starting, asked: Asked) -> Iterator[LiveEngine]:
    with serving(STATE) as running:
        yield running


@pytest.fixture
def followed(live: LiveEngine, tmp_path: Path) -> LiveEngine:
    """The same, with what an inventory has published of it."""
    text = live.config.read_text(encoding="utf-8")
    live.config.write_text(text.replace("[store]", "max_age_seconds = 3600\n[store]"), encoding="utf-8")
    at = now()
    ServedInventory(live.config).publish(STATE, Moments(at, store_asked_at=at, keys_at=at))
    return live


#: A filter of the engine asks how busy hosts are, and nothing of VMs; the check of reservations asks for all.
BUSY, MEASURED_VMS = ["/hosts", "/hosts statistics"], ["/vms", "/vms statistics"]


@pytest.mark.parametrize(
    ("arguments", "vms", "hosts"),
    [
        ("why web", ["/vms"], BUSY),
        ("violations", ["/vms"], ["/hosts"]),
        ("groups list", ["/vms"], ["/hosts"]),
        ("ha-check", MEASURED_VMS, BUSY),
        ("status", MEASURED_VMS, BUSY),
    ],
)
def test_what_is_read_of_vms_and_hosts(
    live: LiveEngine, asked: Asked, arguments: str, vms: list[str], hosts: list[str]
) -> None:
    live.outcome(arguments)
    assert (asked.of("/vms"), asked.of("/hosts")) == (vms, hosts)


@pytest.mark.parametrize(
    "arguments", ["set --on cluster blue GEN 1 1", "define GEN --cluster blue --default 1"]
)
def test_keys_that_hang_on_no_vm_read_none(live: LiveEngine, asked: Asked, arguments: str) -> None:
    live.run(0, f"keys {arguments}")
    policies = {one.split()[0] for one in asked.of("/schedulingpolic")}
    assert {one.split()[0] for one in asked} == {"/clusters", "/hosts", "/datacenters", *policies}


@pytest.mark.parametrize(
    "arguments", ["groups edit apart --priority 3", "groups list", "groups remove apart"]
)
def test_of_an_engine_that_is_followed_only_groups_are_read(
    followed: LiveEngine, asked: Asked, arguments: str
) -> None:
    followed.run(0, *arguments.split())
    assert [one for one in asked if not one.startswith("/clusters/")] == [
        "/clusters affinity_groups",
        "/affinitylabels vms,hosts",
    ]


def test_a_key_of_a_vm_that_is_known_costs_the_engine_nothing(followed: LiveEngine, asked: Asked) -> None:
    setting = ("keys", "set", "GEN", "1", "1", "--on", "server")
    followed.run(0, *setting, "web")
    assert asked == []
    Portal(followed.engine).add_vm(vm("v4", name="new", cluster="c1"))
    assert "server new" in followed.run(0, *setting, "new")[0]


def test_a_group_of_this_moment_is_listed_and_what_is_not_known_yet_is_read_before_a_change_is_refused(
    followed: LiveEngine,
) -> None:
    followed.run(0, "groups edit apart --name asunder")
    assert "asunder" in followed.run(0, "groups list")[0]
    Portal(followed.engine).add_vm(vm("v4", name="new", cluster="c1"))
    followed.run(0, "groups edit asunder --add-vm new")
    # It is a member that the inventory does not know: nobody takes it out.
    followed.run(0, "groups edit asunder --add-vm db")
    assert len(followed.engine.queries.state.groups_of("c1")[0].vms) == 4


def test_a_plan_is_made_of_what_is_published(followed: LiveEngine, asked: Asked) -> None:
    assert enforcer(["plan", "--config", str(followed.config)]) == 0
    assert asked.of("/clusters") == []


@pytest.mark.system
def test_a_slow_engine_takes_no_time_from_planning(serving: Starting) -> None:
    """There is time enough for the plan alone, and not for the reading as well."""
    violated = snapshot(host("h1"), host("h2"), vm("v1", "h1"), vm("v2", "h1"), group("g1", APART, "v1 v2"))
    with serving(violated) as live:
        live.server.disturbances.add(Disturbance(method="GET", path="/vms$", delay_seconds=2.0))
        options = ["--strategy", "greedy", "--deadline", "2", "--config", str(live.config)]
        assert enforcer(["plan", *options]) == REPAIRS_ALL


# -- `ovirt-placement snapshot` prints what the reader reads, configured by file or by Ansible's variables.
@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    with serving(EngineServer()) as server:
        yield server


def printed(*arguments: str, **environment: str) -> bytes:
    with TemporaryDirectory() as folder:
        ended = completed(main, arguments, Path(folder, "log"), environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.encode()


def variables(engine: EngineServer) -> dict[str, str]:
    return {"OVIRT_URL": engine.url, "OVIRT_USERNAME": "admin@internal", "OVIRT_PASSWORD": PASSWORD}


def test_a_live_engine_is_printed_as_a_state_file(engine: EngineServer) -> None:
    state = printed("snapshot", **variables(engine))
    with connected(engine) as connection:
        assert state_file.loads(state) == read_snapshot(connection)


def test_a_state_file_is_checked_and_printed_again(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(full_state()))
    assert state_file.loads(printed("snapshot", "--state", str(file))) == state_file.load(file)


def test_statistics_and_devices_are_asked_for_only_on_demand(engine: EngineServer) -> None:
    engine.requests.clear()
    printed("snapshot", **variables(engine))
    assert not any("statistics" in request or "nics" in request for request in engine.requests)
    printed("snapshot", "--statistics", "--devices", **variables(engine))
    assert "/vms?follow=statistics" in engine.requests
    details = quote("disk_attachments.disk,nics,tags,permissions", safe=".")
    assert any(request.startswith("/vms?") and details in request for request in engine.requests)


def test_placement_keys_of_the_store_are_printed_but_for_those_of_what_is_gone(
    engine: EngineServer, tmp_path: Path
) -> None:
    configured(tmp_path, engine)

    def read() -> Snapshot:
        return state_file.loads(printed("snapshot", "--config", str(tmp_path / "placement.toml")))

    before = read()
    assert (before.placement_keys, before.frozen_keys) == ((), ())
    vms = (before.vms[0].id, "gone")
    there, gone = (PlacementKey("server", vm, "customer", "A", 0.1, 5.0) for vm in vms)
    with closing(KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)) as store:
        put_keys(store, [there, gone])
        store.begin_runs([Run(vm, None, (("A", 0.1),)) for vm in vms])
    found = read()
    assert found.placement_keys == (there,)
    assert found.frozen_keys == (FrozenKeys(vms[0], (("A", 0.1),)),)
    (tmp_path / "store.db").write_text("no database" * 100)
    assert read() == before


# -- Each mistake that a person can repair is one line on standard error that says what to do, and exit 2.
Mistake = Callable[..., str]


def test_the_version_is_that_of_the_package() -> None:
    assert printed("--version").decode() == f"ovirt-placement {version('ovirt-placement')}\n"


NOTHING: dict[str, str] = {"PATH": "/usr/bin"}


@pytest.fixture
def mistake(tmp_path: Path) -> Mistake:
    """Run a command that must fail; return its complaint, which is one line and no traceback.

    What a service shows in its log before that is no complaint.
    """

    def run(*arguments: str) -> str:
        ended = completed(main, arguments, tmp_path / "complaints", NOTHING)
        assert ended.returncode == 2
        assert ended.stdout == ""
        (complaint,) = (line for line in ended.stderr.splitlines() if not line.startswith("INFO "))
        assert complaint.startswith("ovirt-placement: ")
        return complaint.removeprefix("ovirt-placement: ")

    return run


@pytest.mark.parametrize("command", [("snapshot",), ("inventory", "run")], ids=" ".join)
@pytest.mark.parametrize(
    ("url", "given", "complaint"),
    [
        ("{url}", {"password": "wrong"}, "Correct username or password_file under [engine]"),
        (
            f"https://no-such-engine.invalid{API}",
            {},
            'no host is named "no-such-engine.invalid": correct url under [engine]',
        ),
        ("{server}/ovirt-engine/ipa", {}, "correct url under [engine]; it ends in /ovirt-engine/api"),
        ("{url}", {"engine": 'usernam = "x"'}, '[engine] usernam: unknown key; did you mean "username"?'),
        ("{url}", {"mode": 0o644}, "others may read the password: chmod 600 {folder}/password"),
    ],
    ids=["wrong password", "unknown host name", "no engine", "unknown key", "readable password"],
)
def test_what_a_person_can_repair(
    engine: EngineServer,
    tmp_path: Path,
    mistake: Mistake,
    command: tuple[str, ...],
    url: str,
    given: dict[str, Any],
    complaint: str,
) -> None:
    found = url.format(url=engine.url, server=engine.url.removesuffix(API))
    file = write_configuration(tmp_path, found, engine=given.get("engine", ""))
    secret = write_password(tmp_path, given.get("password", PASSWORD))
    secret.chmod(given.get("mode", 0o600))
    assert complaint.format(folder=tmp_path) in mistake(*command, "--config", str(file))


def test_engine_away(tmp_path: Path, mistake: Mistake) -> None:
    with refusing_port() as port:
        file = write_configuration(tmp_path, f"http://127.0.0.1:{port}/s3cret{API}")
        text = mistake("snapshot", "--config", str(file))
    assert text.startswith(f"http://127.0.0.1:{port}: the engine does not answer")
    assert "s3cret" not in text


@pytest.mark.parametrize("command", [("snapshot",), ("inventory", "run")], ids=" ".join)
def test_no_configuration_at_all(command: tuple[str, ...], mistake: Mistake) -> None:
    text = "no engine: set url under [engine] in the configuration, or the variable OVIRT_URL"
    assert mistake(*command) == text


def test_state_files_that_cannot_be_read(tmp_path: Path, mistake: Mistake) -> None:
    said = mistake("snapshot", "--state", str(tmp_path))
    assert said == f"{tmp_path}: cannot read the state file: Is a directory"
    state = full_state()
    state["vms"][0]["host"] = "h9"
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state))
    assert mistake("snapshot", "--state", str(file)) == f'{file}: vms[0].host: no host "h9"'


def test_a_directory_that_cannot_be_used(engine: EngineServer, tmp_path: Path, mistake: Mistake) -> None:
    file = configured(tmp_path, engine)
    file.write_text(re.sub(r'directory = ".*"', f'directory = "{file}"', file.read_text()))
    said = mistake("inventory", "run", "--config", str(file))
    assert said == f"[inventory] directory: {file}: File exists"
