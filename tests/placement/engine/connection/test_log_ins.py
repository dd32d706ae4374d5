"""Log-ins: one that was refused is not tried again until something has changed, by no process of the user."""

import secrets
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineSetupError, LogInRefused
from ovirt_placement.engine.connection.log_ins import LogIns
from tests.configuration import write_password
from tests.placement.engine_server import PASSWORD, EngineServer, serving

REFUSED = LogInRefused("access_denied", "Cannot authenticate user.")


@pytest.fixture
def user() -> str:
    """An account of its own: what is remembered of one outlasts the test, whose folder may come again."""
    return f"{secrets.token_hex(8)}@internal"


def settings(server: EngineServer, folder: Path, password: str, user: str) -> EngineSettings:
    file = write_password(folder, password)
    return EngineSettings(url=server.url, username=user, password_file=file)


def ask(asked: EngineSettings) -> None:
    with EngineConnection(asked) as connection, pytest.raises(EngineSetupError, match="Cannot authenticate"):
        connection.get("/vms")


def test_a_wrong_password_is_tried_once_by_however_many(tmp_path: Path, user: str) -> None:
    with serving(EngineServer()) as server:
        asked = settings(server, tmp_path, "wrong", user)
        threads = [threading.Thread(target=ask, args=(asked,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        for _ in range(5):
            ask(asked)
        assert server.logins == 1


def test_another_process_of_the_user_does_not_try_it_either(tmp_path: Path, user: str) -> None:
    with serving(EngineServer()) as server:
        asked = settings(server, tmp_path, "wrong", user)
        ask(asked)
        code = (
            "from pathlib import Path\n"
            "from ovirt_placement.config import EngineSettings\n"
            "from ovirt_placement.engine.connection.client import EngineConnection\n"
            f"asked = EngineSettings(url={server.url!r}, username={user!r},"
            f" password_file=Path({str(asked.password_file)!r}))\n"
            "EngineConnection(asked).get('/vms')\n"
        )
        other = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert "so that it does not lock the account, it is asked again in 5 min" in other.stderr
        assert server.logins == 1


def test_a_password_that_is_written_again_is_tried_at_once(tmp_path: Path, user: str) -> None:
    with serving(EngineServer()) as server:
        asked = settings(server, tmp_path, "wrong", user)
        with EngineConnection(asked) as connection:
            with pytest.raises(EngineSetupError):
                connection.get("/vms")
            write_password(tmp_path, PASSWORD)
            assert connection.get("/vms")
        assert server.logins == 2


def test_a_session_that_ends_is_renewed_with_the_password_of_that_moment(tmp_path: Path, user: str) -> None:
    with serving(EngineServer()) as server:
        with EngineConnection(settings(server, tmp_path, PASSWORD, user)) as connection:
            assert connection.get("/vms")
            server.password = "other"
            write_password(tmp_path, "other")
            server.tokens.clear()
            assert connection.get("/vms")
        assert server.logins == 2


def refuse(log_ins: LogIns, refusal: LogInRefused = REFUSED) -> bool:
    """Try a log-in that is refused; whether it was tried."""
    tried = False
    try:
        with log_ins.trying("mark"):
            tried = True
            raise refusal
    except LogInRefused:
        return tried


def test_it_is_tried_again_after_longer_and_longer_pauses(user: str) -> None:
    now = [1_000.0]
    log_ins = LogIns("https://engine", user, clock=lambda: now[0])
    tried = []
    for _ in range(24 * 60):
        if refuse(log_ins):
            tried.append(now[0])
        now[0] += 60
    minutes = [round((later - before) / 60) for before, later in pairwise(tried)]
    assert minutes[:6] == [5, 10, 20, 40, 60, 60]
    assert len(tried) <= 28  # a day


def test_a_log_in_that_is_right_begins_again(user: str) -> None:
    now = [1_000.0]
    log_ins = LogIns("https://engine", user, clock=lambda: now[0])
    assert refuse(log_ins)
    now[0] += 301
    with log_ins.trying("mark"):
        pass
    with log_ins.trying("mark"):
        pass
    assert refuse(log_ins)
    now[0] += 301
    assert refuse(log_ins)


def test_a_trouble_of_the_engines_own_is_no_refusal(user: str) -> None:
    log_ins = LogIns("https://engine", user)
    for _ in range(3):
        assert refuse(log_ins, LogInRefused("server_error", "Internal Server Error"))


def test_other_accounts_and_engines_are_others(user: str) -> None:
    assert refuse(LogIns("https://engine", user))
    assert not refuse(LogIns("https://engine", user))
    assert refuse(LogIns("https://engine", f"other-{user}"))
    assert refuse(LogIns("https://other", user))


def test_where_nothing_can_be_kept_for_others_each_process_remembers_for_itself(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_folder() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("tempfile.gettempdir", no_folder)
    log_ins = LogIns("https://engine", user)
    assert [refuse(log_ins) for _ in range(3)] == [True, False, False]
