"""Log-ins: one that was refused is not tried again until something has changed, by no process of the user."""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError, LogInRefused
from ovirt_placement.engine.connection.log_ins import LOG_IN, LogIns
from ovirt_placement.engine.events import add_event
from ovirt_placement.engine.users import NoRole, Refused, UserTokens, read_rights
from ovirt_service.errors import UserError
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import cluster, snapshot
from tests.clock import Clock
from tests.configuration import write_password
from tests.placement.engine.simulated import Authority, simulated
from tests.placement.engine_server import PASSWORD, EngineServer, connected, serving

REFUSED = LogInRefused("access_denied", "Cannot authenticate user.")


@pytest.fixture
def user() -> str:
    """An account of its own: what is remembered of one outlasts the test, whose folder may come again."""
    return f"{secrets.token_hex(8)}@internal"


@pytest.fixture
def engine() -> Iterator[EngineServer]:
    with serving(EngineServer()) as made:
        yield made


def settings(server: EngineServer, folder: Path, password: str, user: str) -> EngineSettings:
    file = write_password(folder, password)
    return EngineSettings(url=server.url, username=user, password_file=file)


def ask(asked: EngineSettings) -> None:
    with EngineConnection(asked) as connection, pytest.raises(EngineSetupError, match="Cannot authenticate"):
        connection.get("/vms")


def test_a_wrong_password_is_tried_once_by_however_many(
    engine: EngineServer, tmp_path: Path, user: str
) -> None:
    asked = settings(engine, tmp_path, "wrong", user)
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(ask, [asked] * 13)] == [None] * 13
    assert engine.logins == 1
    code = (
        "from pathlib import Path\n"
        "from ovirt_placement.config import EngineSettings\n"
        "from ovirt_placement.engine.connection.client import EngineConnection\n"
        f"asked = EngineSettings(url={engine.url!r}, username={user!r},"
        f" password_file=Path({str(asked.password_file)!r}))\n"
        "EngineConnection(asked).get('/vms')\n"
    )
    # Nor does another process of the user.
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "so that it does not lock the account, it is asked again in 5 min" in other.stderr
    assert engine.logins == 1


def test_a_password_that_is_written_again_is_tried_at_once(
    engine: EngineServer, tmp_path: Path, user: str
) -> None:
    with EngineConnection(settings(engine, tmp_path, "wrong", user)) as connection:
        with pytest.raises(EngineSetupError):
            connection.get("/vms")
        write_password(tmp_path, PASSWORD)
        assert connection.get("/vms")
    assert engine.logins == 2


def test_a_session_that_ends_is_renewed_with_the_password_of_that_moment(
    engine: EngineServer, tmp_path: Path, user: str
) -> None:
    with EngineConnection(settings(engine, tmp_path, PASSWORD, user)) as connection:
        assert connection.get("/vms")
        engine.password = "other"
        write_password(tmp_path, "other")
        engine.tokens.clear()
        assert connection.get("/vms")
    assert engine.logins == 2


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
    clock = Clock(1_000.0)
    log_ins = LogIns("https://engine", user, clock=clock)
    tried = []
    for _ in range(24 * 60):
        if refuse(log_ins):
            tried.append(clock.now)
        clock.now += 60
    minutes = [round((later - before) / 60) for before, later in pairwise(tried)]
    assert minutes[:6] == [5, 10, 20, 40, 60, 60]
    assert len(tried) <= 28  # a day


def test_a_log_in_that_is_right_begins_again(user: str) -> None:
    clock = Clock(1_000.0)
    log_ins = LogIns("https://engine", user, clock=clock)
    assert refuse(log_ins)
    clock.now += 301
    for _ in range(2):
        with log_ins.trying("mark"):
            pass
    assert refuse(log_ins)
    clock.now += 301
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


# A simulated engine's single sign-on: what it takes and refuses, and what users then read.
STATE = snapshot(cluster("c"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with simulated(STATE) as (_, made, _):
        yield made


def failed(complaint: str, url: str, kind: type[UserError] = EngineSetupError, **settings: Any) -> None:
    """What is asked of an engine at this address fails, and the user reads why."""
    with connected(url, **settings) as connection, pytest.raises(kind, match=complaint):
        connection.get("/clusters")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.parametrize(
    ("username", "password", "said"),
    [
        ("admin@internal", "wrong", "Cannot authenticate user 'admin@internal': Unable to log in"),
        ("nobody@internal", "password", "Cannot authenticate user 'nobody@internal': Unable to log in"),
        ("admin@elsewhere", "password", "No valid profile found in credentials"),
        ("admin", "password", "No profile found in credentials"),
    ],
)
def test_whom_the_engine_refuses_reads_its_sentence(
    server: Server, username: str, password: str, said: str
) -> None:
    refused = f"the engine refuses {username}: {said}"
    with connected(server.api_url, username=username, password=password) as connection:
        for again in ("", ".*; so that it does not lock the account, it is asked again in 5 min"):
            with pytest.raises(EngineSetupError, match=f"{refused}{again}.*password_file"):
                connection.get("/vms")


@pytest.mark.parametrize("password", ["a&b=c d+e%20", "§ äöü 漢字", '"\\{}#?;,', " "])
def test_a_password_arrives_as_it_is(password: str) -> None:
    with (
        simulated(STATE, password=password) as (_, server, _),
        connected(server.api_url, password=password) as connection,
    ):
        assert b"<clusters>" in connection.get("/clusters")


@pytest.mark.parametrize("trusted", ["ca.pem", "chain.pem"], ids=["authority", "the engine's own"])
def test_over_tls_all_is_done_that_is_done_without(authority: Authority, trusted: str) -> None:
    with (
        simulated(STATE, certificate=authority.certificate("127.0.0.1")) as (_, server, _),
        connected(server.api_url, ca_file=authority.file.with_name(trusted)) as connection,
    ):
        assert b"<clusters>" in connection.get("/clusters")
        assert server.tokens.revoke_all() == 1
        assert b"<clusters>" in connection.get("/clusters")


@pytest.mark.parametrize(("since", "until"), [(-9, -1), (1, 9)])
def test_a_certificate_out_of_its_time_is_named_as_that(authority: Authority, since: int, until: int) -> None:
    now = datetime.now(UTC)
    certificate = authority.certificate(
        "127.0.0.1", not_before=now + timedelta(days=since), not_after=now + timedelta(days=until)
    )
    with simulated(STATE, certificate=certificate) as (_, server, _):
        complaint = r"not valid now \(certificate .*\): renew it on the engine"
        failed(complaint, server.api_url, ca_file=authority.file)


def test_no_variable_adds_an_authority(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(authority.file))
    with simulated(STATE, certificate=authority.certificate("127.0.0.1")) as (_, server, _):
        failed("not trusted", server.api_url)


def test_a_token_that_the_engine_forgets_is_renewed_once_for_each_session(server: Server) -> None:
    with connected(server.api_url) as connection:
        connection.get("/clusters")
        for _ in range(3):
            assert server.tokens.revoke_all() == 1
            assert b"<clusters>" in connection.get("/clusters")
    assert server.tokens.revoke_all() == 0  # it has logged out


def test_what_the_sdk_was_refused_for_its_token_is_sent_again_and_once(server: Server) -> None:
    with connected(server.api_url) as connection:
        connection.get("/clusters")
        server.tokens.revoke_all()
        before = connection.get("/events").count(b"<event ")
        server.tokens.revoke_all()
        assert add_event(connection, number=7, severity="normal", description="text")
        assert connection.get("/events").count(b"<event ") == before + 1


def test_the_end_breaks_a_log_in_off(server: Server) -> None:
    server.disturbances.add(Disturbance(path=LOG_IN, delay_seconds=60))
    connection = connected(server.api_url)
    with ThreadPoolExecutor() as askers:
        asking = askers.submit(connection.get, "/clusters")
        while server.disturbances.waiting:
            wait([asking], 0.01)
        connection.close()
        with pytest.raises(EngineAway, match="is not waited for"):
            asking.result(30)
    server.disturbances.clear()


@pytest.mark.parametrize(
    ("disturbance", "complaint"),
    [
        *(({"drop": drop}, "does not answer") for drop in ("request", "answer")),
        *(({"status": status}, f"HTTP status {status}") for status in (502, 503, 504)),
    ],
)
def test_a_log_in_that_is_lost_or_that_a_web_server_answers_refuses_no_password(
    server: Server, disturbance: dict[str, Any], complaint: str
) -> None:
    server.disturbances.add(Disturbance(path=LOG_IN, **disturbance))
    with connected(server.api_url) as connection:
        with pytest.raises(EngineAway, match=complaint):
            connection.get("/clusters")
        assert b"<clusters>" in connection.get("/clusters")


def test_of_an_unchecked_certificate_our_own_warning_is_all_that_is_said(authority: Authority) -> None:
    code = (
        "from ovirt_placement.config import EngineSettings\n"
        "from ovirt_placement.engine.connection.client import EngineConnection\n"
        "import sys\n"
        "asked = EngineSettings(url=sys.argv[1], username='admin@internal', insecure=True)\n"
        "with EngineConnection(asked, {'OVIRT_PASSWORD': 'password'}) as connection:\n"
        "    connection.get('/clusters')\n"
    )
    with simulated(STATE, certificate=authority.certificate("engine.invalid")) as (_, server, _):
        words = [sys.executable, "-c", code, server.api_url]
        asked = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert asked.stderr == ""


USER = "admin@internal"


@pytest.fixture
def tokens(server: Server) -> UserTokens:
    return UserTokens(EngineSettings(url=server.api_url))


def by_token(server: Server, token: str, password: str = "", **settings: Any) -> EngineConnection:
    asked = EngineSettings(**{"url": server.api_url, **settings})
    return EngineConnection(asked, {"OVIRT_TOKEN": token, "OVIRT_PASSWORD": password})


def test_a_token_needs_neither_user_nor_password_and_is_left_to_its_owner(
    server: Server, tokens: UserTokens
) -> None:
    token = tokens.log_in(USER, PASSWORD)
    with by_token(server, token) as connection:
        assert b"<clusters>" in connection.get("/clusters")
    assert tokens.is_valid(token), "closing the connection must not end the caller's session"
    # It goes before the password that is configured.
    with by_token(server, token, "wrong", username=USER) as connection:
        assert b"<clusters>" in connection.get("/clusters")


def test_a_token_that_is_over_is_reported_and_no_password_is_tried(
    server: Server, tokens: UserTokens
) -> None:
    token = tokens.log_in(USER, PASSWORD)
    tokens.log_out(token)
    with (
        by_token(server, token, PASSWORD, username=USER) as connection,
        pytest.raises(EngineSetupError, match="refuses the token of OVIRT_TOKEN"),
    ):
        connection.get("/clusters")


def test_what_is_no_token_is_refused_and_not_repeated(server: Server) -> None:
    with pytest.raises(UserError, match="OVIRT_TOKEN") as refused:
        by_token(server, "two words")
    assert "two words" not in str(refused.value)


_NO_ROLE = b"<html><body>The user a@b with profile [b] is not authorized to perform login</body></html>"
_VOID = b"<html><body>invalid_grant: The provided authorization grant has expired.</body></html>"


@pytest.mark.parametrize(("body", "no_role"), [(_NO_ROLE, True), (_VOID, False)])
def test_a_user_without_a_role(body: bytes, no_role: bool) -> None:
    server = EngineServer(answer=lambda asked: (401, body))
    server.tokens.add("token")
    with serving(server), pytest.raises(Refused) as refused:
        read_rights(UserTokens(EngineSettings(url=server.url)), "token")
    assert isinstance(refused.value, NoRole) == no_role
