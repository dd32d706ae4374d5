"""Each mistake that a person can repair is one line on standard error that says what to do, and exit 2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from tests.placement.engine_server import API, PASSWORD, EngineServer, serving
from tests.placement.model.full_state import full_state
from tests.placement.sockets import refusing_port
from tests.processes import completed

Mistake = Callable[..., str]
NOTHING: dict[str, str] = {"PATH": "/usr/bin"}


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    with serving(EngineServer()) as server:
        yield server


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


def configured(
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
    text = mistake(*command, "--config", configured(tmp_path, engine.url, password="wrong"))
    assert "the engine refuses admin@internal" in text
    assert "Correct username or password_file under [engine]" in text


def test_unknown_host_name(tmp_path: Path, command: list[str], mistake: Mistake) -> None:
    text = mistake(*command, "--config", configured(tmp_path, f"https://no-such-engine.invalid{API}"))
    assert 'no host is named "no-such-engine.invalid": correct url under [engine]' in text


def test_engine_away(tmp_path: Path, mistake: Mistake) -> None:
    with refusing_port() as port:
        text = mistake("snapshot", "--config", configured(tmp_path, f"http://127.0.0.1:{port}/s3cret{API}"))
        assert text.startswith(f"http://127.0.0.1:{port}: the engine does not answer")
        assert "s3cret" not in text


def test_what_is_no_engine(
    engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake
) -> None:
    text = mistake(*command, "--config", configured(tmp_path, engine.url.replace(API, "/ovirt-engine/ipa")))
    assert "correct url under [engine]; it ends in /ovirt-engine/api" in text


def test_bad_key(engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake) -> None:
    file = configured(tmp_path, engine.url, more='pasword_file = "x"')
    assert mistake(*command, "--config", file) == (
        f'{file}: [engine] pasword_file: unknown key; did you mean "password_file"?'
    )


def test_world_readable_password_file(
    engine: EngineServer, tmp_path: Path, command: list[str], mistake: Mistake
) -> None:
    text = mistake(*command, "--config", configured(tmp_path, engine.url, mode=0o644))
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
    file = configured(tmp_path, engine.url)
    Path(file).write_text(Path(file).read_text().replace(f"{tmp_path}/run", f"{tmp_path}/password"))
    assert mistake("inventory", "run", "--config", file) == (
        f"[inventory] directory: {tmp_path}/password: File exists"
    )
