"""Others who mean harm, or have bad luck, next to a person who is logged in: the page as a process."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy

from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.configuration import PASSWORD, write_configuration
from tests.pages import samples
from tests.placement.postgres_server import running
from tests.portal import Portal
from tests.web.conftest import STATE
from tests.web.running import COOKIE, ROOT, Answer, Page, certified, free_port, page_process, paged

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: As it commits, the server takes its time, so that it can be stopped then.
_COMMITTED_SLOWLY = """
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(25); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON pauses
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()
"""
_COMMITTING = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT'"

#: A person who is logged in has an answer within this.
SOON = 1.0


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with paged(tmp_path, STATE) as found:
        yield found


def soon(page: Page, cookie: str, path: str = "/") -> Answer:
    """What the page answers, which takes no longer than it may."""
    began = time.monotonic()
    answer = page.ask(path, cookie=cookie)
    assert time.monotonic() - began < SOON
    return answer


@contextmanager
def hanging(page: Page) -> Iterator[threading.Event]:
    """An engine that answers no request that comes with a token; the event is set at the first."""
    known, goes_on, asked = page.server.tokens.user, threading.Event(), threading.Event()

    def user(token: str) -> Any:
        asked.set()
        goes_on.wait(60)
        return known(token)

    page.server.tokens.user = user  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        page.server.tokens.user = known  # type: ignore[method-assign]
        goes_on.set()


@contextmanager
def at_once(count: int, ask: Any) -> Iterator[list[Any]]:
    """This many threads ask; what they were answered stands in the list at the end."""
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda number=number: answers.append(ask(number))) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("same", [True, False], ids=["one token", "one each"])
def test_while_the_engine_hangs_tokens_that_nobody_knows_hold_up_no_view(page: Page, same: bool) -> None:
    cookie = page.session()

    def ask(number: int) -> int:
        token = "invented" if same else f"invented{number}"
        return page.ask("/api/v1/status", Authorization=f"Bearer {token}").status

    with ExitStack() as stack, ExitStack() as hangs:
        asked = hangs.enter_context(hanging(page))
        answers = stack.enter_context(at_once(60, ask))
        assert asked.wait(30)
        for _ in range(5):
            assert soon(page, cookie).status == 200
    assert set(answers) <= {401, 429, 503}
    assert soon(page, cookie).status == 200


def test_300_plans_of_one_reader_hold_up_nobody(page: Page) -> None:
    reader, other = page.session("reader@internal"), page.session()

    def ask(number: int) -> Answer:
        return page.ask(f"/maintenance/c1?host=h1&host=h2&stop={'%0A' * number}", cookie=reader)

    with at_once(300, ask) as answers:
        for _ in range(5):
            assert (soon(page, other).status, soon(page, other, "/maintenance/c1").status) == (200, 200)
        assert page.ask("/maintenance/c1?host=h1", cookie=other).status == 200
    statuses = Counter(answer.status for answer in answers)
    assert set(statuses) == {200, 429}
    assert statuses[429] > 250
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers if answer.status == 429)
    assert "plans: requests are refused with 429" in page.process.log


def test_a_right_that_is_taken_away_ends_views_and_streams_with_the_role_that_is_needed(
    tmp_path: Path,
) -> None:
    with paged(tmp_path, STATE, web="validate_seconds = 0.4") as page:
        granted = Portal(page.engine).grant(BY_NAME["ReadOnlyAdmin"].id, user_id("user@internal"))
        cookie = page.session("user@internal")
        assert page.ask("/", cookie=cookie).status == 200
        stream = requests.get(
            f"{page.url}events", headers={"Cookie": f"{COOKIE}={cookie}"}, stream=True, timeout=60
        )
        Portal(page.engine).revoke(granted.id)
        page.until(lambda: page.ask("/", cookie=cookie).status == 403)
        assert "ReadOnlyAdmin" in stream.content.decode()  # read to its end
        for path in ("/", "/vm/a", "/api/v1/status", "/events"):
            answer = page.ask(path, cookie=cookie)
            assert answer.status == 403
            assert "ReadOnlyAdmin" in answer.text
        # Who has it back reads on, and may log in as somebody else at any time.
        assert page.ask("/log-in", cookie=cookie).status == 200
        Portal(page.engine).grant(BY_NAME["ReadOnlyAdmin"].id, user_id("user@internal"))
        page.until(lambda: page.ask("/", cookie=cookie).status == 200)


def test_after_an_act_that_was_refused_rights_are_those_of_now(page: Page) -> None:
    granted = Portal(page.engine).grant(BY_NAME["SuperUser"].id, user_id("user@internal"))
    cookie = page.session("user@internal")
    csrf = page.csrf(cookie)
    Portal(page.engine).revoke(granted.id)
    refused = page.ask("/cluster/c1/pause", cookie=cookie, form={"csrf": csrf, "hours": "1"})
    assert refused.status == 403
    assert "ReadOnlyAdmin" in refused.text
    assert page.ask("/", cookie=cookie).status == 403
    assert page.ask("/log-out", cookie=cookie, form={"csrf": csrf}).status == 303


def test_a_program_with_an_expired_token_keeps_no_password_and_no_token_out(page: Page) -> None:
    good = page.server.tokens.log_in("admin@internal", PASSWORD)
    for _ in range(20):
        assert page.ask("/api/v1/status", Authorization="Bearer expired").status == 401
        assert page.ask("/log-in/token", form={"token": "expired"}).status == 401
    for number in range(20):
        assert page.ask("/api/v1/status", Authorization=f"Bearer expired{number}").status == 401
    assert page.ask("/api/v1/status", Authorization=f"Bearer {good}").status == 200
    assert page.ask("/log-in/token", form={"token": good}).status == 303
    began = time.monotonic()
    assert page.log_in().status == 303
    assert time.monotonic() - began < SOON


def test_who_logs_in_first_while_others_guess_their_password_is_let_in(page: Page) -> None:
    ended = threading.Event()

    def guess(number: int) -> None:
        while not ended.is_set():
            page.log_in("reader@internal", f"wrong-{number}")

    with at_once(40, guess):
        try:
            page.until(lambda: page.audit().count("does not take this name") >= 8)
            assert page.log_in("reader@internal").status == 303
        finally:
            ended.set()


def test_a_store_that_hangs_holds_up_no_view_and_no_log_in(tmp_path: Path) -> None:
    with running() as server, paged(tmp_path, STATE, store_url=server.url) as page:
        cookie = page.session()
        assert page.ask("/", cookie=cookie).status == 200
        with server.hanging():
            for path in ("/", "/cluster/c1", "/vm/a", "/keys", "/history", "/maintenance/c1", "/health") * 2:
                assert soon(page, cookie, path).status in (200, 503), path
            page.until(lambda: "has not answered within" in soon(page, cookie).text)
            assert page.log_in().status == 303
            # What cannot be shown, asked or done without the store says so, and when to come again.
            refused = [soon(page, cookie, "/api/v1/keys"), pause(page, cookie)]
            assert [(one.status, one.headers["retry-after"]) for one in refused] == [(503, "5")] * 2
            assert "Nothing was changed: " in refused[1].text
        page.until(lambda: "has not answered within" not in page.ask("/", cookie=cookie).text)
        assert page.ask("/history", cookie=cookie).status == 200


@pytest.mark.nightly
def test_of_a_store_that_hangs_as_it_commits_it_is_not_said_that_nothing_was_changed(tmp_path: Path) -> None:
    with running() as server, paged(tmp_path, STATE, store_url=server.url) as page:
        cookie = page.session()
        assert pause(page, cookie).status == 303
        with closing(sqlalchemy.create_engine(server.url.replace(":", "+psycopg:", 1)).connect()) as asking:
            asking = asking.execution_options(isolation_level="AUTOCOMMIT")
            asking.exec_driver_sql(_COMMITTED_SLOWLY)
            with ThreadPoolExecutor(1) as other, ExitStack() as hanging:
                answer = other.submit(pause, page, cookie)
                page.until(lambda: asking.exec_driver_sql(_COMMITTING).scalar_one() == 1)
                hanging.enter_context(server.hanging())
                refused = answer.result()
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert "It is not known whether that was done: " in refused.text
        assert "not known: store postgresql" in page.audit()


def pause(page: Page, cookie: str) -> Answer:
    return page.act("/cluster/c1/pause", cookie, hours="1")


class Wire:
    """A connection to the page, by TLS or without; a silent one does not even begin that."""

    def __init__(self, at: Wired, *, buffer: int = 0, silent: bool = False) -> None:
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", at.port))
        if at.context is not None and not silent:
            self.socket = at.context.wrap_socket(self.socket, server_hostname="localhost")

    def send(self, text: str) -> None:
        self.socket.sendall(text.encode())

    def closed(self) -> bool:
        """Whether the other side has ended it; waits for that."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


class Wired:
    """A page, how to connect to it, and its page of metrics."""

    def __init__(self, folder: Path, tls: bool) -> None:
        self.port, self.metrics, self.context = free_port(), free_port(), None
        lines = f'listen = "127.0.0.1:{self.port}"\nmetrics = "127.0.0.1:{self.metrics}"\n'
        self.verify: str | bool = True
        if tls:
            lines += certified(folder)
            lines += f'origins = ["https://localhost:{self.port}"]\n'
            self.context = ssl.create_default_context(cafile=folder / "ca.pem")
            self.verify = str(folder / "ca.pem")
        self.url = f"{'https' if tls else 'http'}://localhost:{self.port}{ROOT}"
        self.head = f"GET {ROOT}/log-in HTTP/1.1\r\nHost: localhost:{self.port}\r\n"
        self.file = write_configuration(folder, "http://127.0.0.1:9/ovirt-engine/api", more=f"[web]\n{lines}")

    def answers(self) -> None:
        began = time.monotonic()
        assert requests.get(f"{self.url}/log-in", verify=self.verify, timeout=30).status_code == 200
        assert time.monotonic() - began < SOON

    def count(self, name: str) -> float:
        return samples(f"http://127.0.0.1:{self.metrics}/metrics").get((f"ovirt_placement_web_{name}",), 0.0)


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def wired(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Wired]:
    found = Wired(tmp_path, request.param)
    with page_process(found.file):
        yield found


def test_2050_connections_that_say_nothing_are_closed_and_keep_nobody_out(wired: Wired) -> None:
    with ExitStack() as all_open:
        silent = [Wire(wired, silent=True) for _ in range(2050)]
        for one in silent:
            all_open.enter_context(one.socket)
        for _ in range(5):
            wired.answers()
        # Half a head, and a body that does not come.
        head, body = Wire(wired), Wire(wired)
        head.send(wired.head)
        body.send(wired.head.replace("GET", "POST") + "Content-Length: 100\r\n\r\nname=")
        assert all(one.closed() for one in (*silent, head, body))
        wired.answers()
        assert wired.count("connections_closed_total") >= 2050
        said = wired.file.with_name("web.log").read_text()
        assert "connections are closed" in said
        assert "Traceback" not in said


def test_who_reads_no_answer_is_not_waited_for_when_others_come(wired: Wired) -> None:
    readers = [Wire(wired, buffer=2048) for _ in range(50)]
    ask = f"{wired.head}\r\n".replace("/log-in", "/static/vendor/htmx-4.0.1.min.js")
    for reader in readers:
        reader.send(ask * 20)
    for _ in range(5):
        wired.answers()


def test_many_connections_at_once_that_ask_are_all_answered(wired: Wired) -> None:
    def ask(_: int) -> int:
        return requests.get(f"{wired.url}/log-in", verify=wired.verify, timeout=60).status_code

    with ThreadPoolExecutor(50) as many:
        assert Counter(many.map(ask, range(500))) == {200: 500}


def test_who_logs_out_while_the_engine_hangs_is_out(tmp_path: Path) -> None:
    with paged(tmp_path, STATE, web="validate_seconds = 0.1") as page:
        cookie = page.session()
        csrf = page.csrf(cookie)
        with hanging(page) as asked:
            assert asked.wait(30)
            time.sleep(0.5)
            assert page.ask("/log-out", cookie=cookie, form={"csrf": csrf}).status == 303
            assert page.ask("/", cookie=cookie).status == 303
