"""`snapshot` prints what the reader reads; each mistake is one line that says what to do, and exit 2."""

import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import FrozenKeys, PlacementKey, state_file
from ovirt_placement.store.keys import KeyStore, Run
from tests.placement.engine_server import API, PASSWORD, EngineServer, serving
from tests.placement.inventory.running import configured
from tests.placement.model.full_state import full_state
from tests.placement.sockets import refusing_port
from tests.processes import completed
from tests.stored import put_keys


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


def test_a_live_engine_is_printed_as_a_state_file(engine: EngineServer) -> None:
    state = printed(
        "snapshot", OVIRT_URL=engine.url, OVIRT_USERNAME="admin@internal", OVIRT_PASSWORD=PASSWORD
    )
    settings = EngineSettings(url=engine.url, username="admin@internal")
    with EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD}) as connection:
        assert state_file.loads(state) == read_snapshot(connection)


def test_a_state_file_is_checked_and_printed_again(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(full_state()))
    assert state_file.loads(printed("snapshot", "--state", str(file))) == state_file.load(file)


def test_statistics_and_devices_are_asked_for_only_on_demand(engine: EngineServer) -> None:
    variables = {"OVIRT_URL": engine.url, "OVIRT_USERNAME": "admin@internal", "OVIRT_PASSWORD": PASSWORD}
    engine.requests.clear()
    printed("snapshot", **variables)
    assert not any("statistics" in request or "nics" in request for request in engine.requests)
    printed("snapshot", "--statistics", "--devices", **variables)
    assert "/vms?follow=statistics" in engine.requests
    details = quote("disk_attachments.disk,nics,tags,permissions", safe=".")
    assert any(request.startswith("/vms?") and details in request for request in engine.requests)


def test_placement_keys_of_the_store_are_printed_but_for_those_of_what_is_gone(
    engine: EngineServer, tmp_path: Path
) -> None:
    state = state_file.loads(printed("snapshot", "--config", str(configured(tmp_path, engine))))
    assert (state.placement_keys, state.frozen_keys) == ((), ())
    there, gone = (
        PlacementKey(level="server", resource=vm, key_class="customer", name="A", value=0.1, weight=5.0)
        for vm in (state.vms[0].id, "gone")
    )
    store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    put_keys(store, [there, gone])
    store.begin_runs([Run(vm, None, (("A", 0.1),)) for vm in (state.vms[0].id, "gone")])
    store.close()
    found = state_file.loads(printed("snapshot", "--config", str(tmp_path / "placement.toml")))
    assert found.placement_keys == (there,)
    assert found.frozen_keys == (FrozenKeys(state.vms[0].id, (("A", 0.1),)),)
    (tmp_path / "store.db").write_text("no database" * 100)
    assert state_file.loads(printed("snapshot", "--config", str(tmp_path / "placement.toml"))) == state


def test_the_version_is_that_of_the_package() -> None:
    assert printed("--version").decode() == f"ovirt-placement {version('ovirt-placement')}\n"


# -- Each mistake that a person can repair is one line on standard error that says what to do, and exit 2.
Mistake = Callable[..., str]
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


def mistaken(
    directory: Path, url: str, *, password: str = PASSWORD, mode: int = 0o600, more: str = ""
) -> str:
    secret = directory / "password"
    secret.write_text(password)
    secret.chmod(mode)
    file = directory / "placement.toml"
    file.write_text(
        f'[engine]\nurl = "{url}"\nusername = "admin@internal"\npassword_file = "{secret}"\n{more}\n'
        f'[inventory]\ndirectory = "{directory}/run"\n'
    )
    return str(file)


@pytest.fixture(params=[["snapshot"], ["inventory", "run"]], ids=" ".join)
def command(request: pytest.FixtureRequest) -> list[str]:
    return list(request.param)


def test_wrong_password(engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake) -> None:
    text = mistake(*command, "--config", mistaken(tmp_path, engine.url, password="wrong"))
    assert "the engine refuses admin@internal" in text
    assert "Correct username or password_file under [engine]" in text


def test_unknown_host_name(tmp_path: Path, command: list[str], mistake: Mistake) -> None:
    text = mistake(*command, "--config", mistaken(tmp_path, f"https://no-such-engine.invalid{API}"))
    assert 'no host is named "no-such-engine.invalid": correct url under [engine]' in text


def test_engine_away(tmp_path: Path, mistake: Mistake) -> None:
    with refusing_port() as port:
        text = mistake("snapshot", "--config", mistaken(tmp_path, f"http://127.0.0.1:{port}/s3cret{API}"))
        assert text.startswith(f"http://127.0.0.1:{port}: the engine does not answer")
        assert "s3cret" not in text


def test_what_is_no_engine(
    engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake
) -> None:
    text = mistake(*command, "--config", mistaken(tmp_path, engine.url.replace(API, "/ovirt-engine/ipa")))
    assert "correct url under [engine]; it ends in /ovirt-engine/api" in text


def test_bad_key(engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake) -> None:
    file = mistaken(tmp_path, engine.url, more='pasword_file = "x"')
    assert mistake(*command, "--config", file) == (
        f'{file}: [engine] pasword_file: unknown key; did you mean "password_file"?'
    )


def test_world_readable_password_file(
    engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake
) -> None:
    text = mistake(*command, "--config", mistaken(tmp_path, engine.url, mode=0o644))
    assert text == f"{tmp_path}/password: others may read the password: chmod 600 {tmp_path}/password"


def test_no_configuration_at_all(command: list[str], mistake: Mistake) -> None:
    text = mistake(*command)
    assert text == "no engine: set url under [engine] in the configuration, or the variable OVIRT_URL"


def test_unreadable_state_file(tmp_path: Path, mistake: Mistake) -> None:
    assert mistake("snapshot", "--state", str(tmp_path)) == (
        f"{tmp_path}: cannot read the state file: Is a directory"
    )


def test_dangling_reference(tmp_path: Path, mistake: Mistake) -> None:
    state = full_state()
    state["vms"][0]["host"] = "h9"
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state))
    assert mistake("snapshot", "--state", str(file)) == f'{file}: vms[0].host: no host "h9"'


def test_a_directory_that_cannot_be_used(engine: EngineServer, tmp_path: Path, mistake: Mistake) -> None:
    file = mistaken(tmp_path, engine.url)
    Path(file).write_text(Path(file).read_text().replace(f"{tmp_path}/run", f"{tmp_path}/password"))
    assert mistake("inventory", "run", "--config", file) == (
        f"[inventory] directory: {tmp_path}/password: File exists"
    )
