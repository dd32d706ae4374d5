"""The connection: what goes wrong is sorted into who can do something about it; threads ask side by side."""

import os
import re
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.actions import save_group
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import (
    Cause,
    EngineAway,
    EngineFault,
    EngineSetupError,
    sort_requests_error,
)
from ovirt_placement.engine.connection.log_ins import read_password
from ovirt_service.errors import UserError
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, group, snapshot
from tests.placement.engine.simulated import Authority, simulated
from tests.placement.engine_server import EngineServer, answering, connected, serving
from tests.placement.sockets import silent_port


def refused(complaint: str, server: str, **settings: Any) -> None:
    """A person must set something right, and is shown what."""
    with connected(server, **settings) as connection, pytest.raises(EngineSetupError, match=complaint):
        connection.get("/vms")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An engine whose certificate is for another name, and the file of its CA."""
    authority = Authority(tmp_path_factory.mktemp("ca"))
    certificate = authority.certificate("engine.invalid")
    with simulated(snapshot(cluster("c")), certificate=certificate) as (_, server, _):
        yield server.api_url, authority.file


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    with serving(EngineServer()) as server:
        yield server


def test_whom_tls_does_not_trust_is_a_wrong_set_up(tls: tuple[str, Path], tmp_path: Path) -> None:
    url, authority = tls
    other, junk = tmp_path / "other.pem", tmp_path / "junk.pem"
    trustme.CA().cert_pem.write_to_path(other)
    junk.write_text("junk")
    for ca_file in (other, None):
        refused(r"not trusted.*set ca_file.*ca-certificate", url, ca_file=ca_file)
    refused(r"for another name than 127\.0\.0\.1", url, ca_file=authority)
    refused("holds no CA certificate", url, ca_file=junk)
    with pytest.raises(UserError, match=r"ca_file: .*absent\.pem: cannot be read"):
        connected(url, ca_file=tmp_path / "absent.pem")
    with connected(url, insecure=True) as connection:
        assert connection.get("/hosts")


def test_tls_to_a_server_without_it_is_a_wrong_set_up(engine: EngineServer) -> None:
    refused("correct url", engine.url.replace("http:", "https:"), insecure=True)


def test_a_late_answer_is_reported_in_the_same_words_by_the_connection_itself() -> None:
    with silent_port() as port, pytest.raises(requests.ReadTimeout) as raised:
        requests.get(f"http://127.0.0.1:{port}/", timeout=0.3)
    unanswered = sort_requests_error(raised.value, 0.3)
    assert (unanswered.cause, str(unanswered)) == (Cause.LOST, "no answer within 0.3 s")


def test_a_connection_lives_on_after_the_engine_was_away() -> None:
    status = [503]
    server = EngineServer(answer=lambda path: (status[0], b"<html>") if status[0] != 200 else None)
    with serving(server), connected(server) as connection:
        with pytest.raises(EngineAway):
            connection.get("/vms")
        status[0] = 200
        assert connection.get("/vms")


@pytest.mark.parametrize("status", [200, 302, 404, 500, 503])
def test_what_answers_in_the_engines_place_keeps_no_connection(status: int) -> None:
    """As what shows its own page for as long as a connection to it stands, wherever the name leads by now."""
    threads = list[threading.Thread]()  # one for each connection

    def answer(path: str) -> tuple[int, bytes] | None:
        threads.append(threading.current_thread())
        return (status, b"<html>") if threads[-1] is threads[0] else None

    with answering(answer) as (server, connection):
        with pytest.raises(UserError):
            connection.get("/vms")
        assert connection.get("/vms")
        assert server.logins == 1


def test_what_the_engine_refuses_keeps_its_reason() -> None:
    fault = b"<fault><detail>[One., Two.]</detail><reason>Operation Failed</reason></fault>"
    with (
        answering(lambda path: (409, fault)) as (_, connection),
        pytest.raises(EngineFault, match=r"/vms: the engine answers 409: One\.; Two\.") as refused,
    ):
        connection.get("/vms")
    assert (refused.value.code, refused.value.fault.messages) == (409, ("One.", "Two."))


URL = "https://engine/ovirt-engine/api"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"url": None}, "no engine: set url under"),
        ({"url": "engine.example.com"}, "write https://ENGINE/ovirt-engine/api"),
        ({"url": URL, "username": None}, "no user: set username under"),
        ({"url": URL, "password": ""}, "no password: set password_file"),
    ],
)
def test_what_is_not_set_is_named(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        connected("", **settings)


OTHERS = "^{file}: others may read the password: chmod 600 {file}$"
MISTAKES = {
    "absent": (None, 0o600, "cannot read the password: No such file"),
    "empty": (b"\n", 0o600, "is empty"),
    "binary": (b"\xff\xfe", 0o600, "is not UTF-8 text"),
    "endless": (b"x" * 5000, 0o600, "is longer than 4096 characters"),
    "the group reads": (b"secret", 0o640, OTHERS),
    "others read": (b"secret", 0o604, OTHERS),
    "the group writes": (b"secret", 0o620, OTHERS),
    "all write": (b"secret", 0o666, OTHERS),
}


def password_of(file: Path, **environment: str) -> str:
    return read_password(EngineSettings(password_file=file), environment).text


def test_the_password_is_the_files_own_line(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" with spaces \n")
    file.chmod(0o600)
    assert password_of(file, OVIRT_PASSWORD="other") == " with spaces "


@pytest.mark.parametrize(("content", "mode", "complaint"), MISTAKES.values(), ids=MISTAKES)
def test_a_password_that_cannot_be_had_or_others_may_touch_is_refused_with_what_to_do(
    tmp_path: Path, content: bytes | None, mode: int, complaint: str
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(UserError, match=complaint.format(file=re.escape(str(file)))):
        password_of(file)


def test_a_password_file_that_is_none_keeps_nobody_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "password"
    os.mkfifo(pipe, 0o600)
    for file in (pipe, Path("/dev/zero")):
        with pytest.raises(UserError, match="cannot read the password: not a regular file"):
            password_of(file)


class Slow:
    """An engine that answers for /hosts only when a test lets it."""

    def __init__(self) -> None:
        self.asked, self.released = threading.Event(), threading.Event()
        self.server = EngineServer(answer=self._answer)

    def _answer(self, path: str) -> None:
        if path == "/hosts":
            self.asked.set()
            self.released.wait(60)


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    with serving(made.server):
        yield made
        made.released.set()


def test_who_waits_for_a_slow_answer_holds_up_nobody(slow: Slow) -> None:
    answers: list[bytes] = []
    with connected(slow.server) as connection:
        waiting = threading.Thread(target=lambda: answers.append(connection.get("/hosts")))
        waiting.start()
        assert slow.asked.wait(30)
        assert connection.get("/vms")
        assert not answers
        slow.released.set()
        waiting.join(30)
        assert len(answers) == 1
        for _ in range(5):
            connection.get("/vms")
        assert slow.server.logins < 5  # two asked at once, and seven requests were made


def test_neither_a_refusal_nor_a_loss_costs_a_session(slow: Slow) -> None:
    with connected(slow.server) as connection:
        connection.get("/vms")
        with pytest.raises(EngineFault):
            connection.get("/nothing")
        connection.get("/vms")
        assert slow.server.logins == 1
        with pytest.raises(EngineAway), connection.session():
            raise EngineAway("it broke", request_sent=True)
        connection.get("/vms")
        assert slow.server.logins == 1


def test_a_change_whose_answer_is_lost_is_not_sent_again_behind_our_back() -> None:
    """Over a connection that served requests before, curl itself would send it a second time."""
    with simulated(snapshot(cluster("c"))) as (engine, server, connection):
        connection.get("/clusters")
        server.disturbances.add(Disturbance(method="POST", path="/affinitygroups", drop="answer", times=2))
        with pytest.raises(EngineAway) as away:
            save_group(connection, None, group("g", cluster="c"))
        assert away.value.request_sent
        assert [one.times for one in server.disturbances.waiting] == [1]  # the second was not used up
        assert [found.name for found in engine.queries.state.groups_of("c")] == ["g"]
        connection.get("/clusters")


# A process with thousands of open files waits for the engine as any other: neither longer, nor spinning.
ANSWER_SECONDS = 0.1
#: What waits by `select` sees no descriptor from 1,024 on.
MANY = 2000
#: How much longer a process with many may take. The shortest time of each is what requests cost, however busy
#: the machine is.
MOST, REQUESTS, ROUNDS = 1.5, 4, 60


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _all_open_below(number: int) -> Iterator[None]:
    """Let each further descriptor have this number or a higher one."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < number - 1:
        opened.append(os.dup(opened[0]))
    try:
        yield
    finally:
        for one in opened:
            os.close(one)


def _seconds(connection: EngineConnection, method: str) -> float:
    """Of the processor, for requests in this thread: other tests keep all cores busy."""
    began = time.thread_time()
    for _ in range(REQUESTS):
        connection.send(method, "/vms")
    return time.thread_time() - began


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_takes_as_long_however_many_files_are_open(method: str) -> None:
    with ExitStack() as stack:
        engine = stack.enter_context(serving(EngineServer(answer=lambda path: (200, b"<done/>"))))
        few = stack.enter_context(connected(engine))
        few.send("GET", "/first")  # its descriptors have their numbers from here on
        stack.enter_context(_all_open_below(MANY))
        many = stack.enter_context(connected(engine))
        shortest = dict.fromkeys((few, many), 60.0)
        for _ in range(ROUNDS):
            shortest = {one: min(least, _seconds(one, method)) for one, least in shortest.items()}
            if shortest[many] <= MOST * shortest[few]:
                break
        assert shortest[many] <= MOST * shortest[few]


def test_an_answer_that_takes_its_time_is_waited_for_without_work() -> None:
    never = threading.Event()
    with ExitStack() as stack:
        engine = stack.enter_context(serving(EngineServer()))
        stack.enter_context(_all_open_below(MANY))
        connection = stack.enter_context(connected(engine))
        connection.get("/vms")
        engine.answer = lambda path: (never.wait(ANSWER_SECONDS), None)[1]
        worked, began = time.thread_time(), time.monotonic()
        assert b"<vms>" in connection.get("/vms")
        assert time.thread_time() - worked < (time.monotonic() - began) / 4
