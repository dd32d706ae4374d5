"""Limits: no answer takes more memory or time than an engine's own, and none holds up the end."""

import gzip
import threading
import time
from collections.abc import Iterator

import pytest

from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.exchanges import Limits
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError
from ovirt_placement.engine.topology import read_snapshot
from tests.placement.engine_server import EngineServer, connected, serving

LARGE = b"<vms>" + b" " * 3_000_000 + b"</vms>"


@pytest.mark.parametrize(
    ("body", "limits", "complaint"),
    [
        (gzip.compress(LARGE), Limits(10_000_000, 2_000_000), "larger than 1 MiB unpacked"),
        (LARGE, Limits(1_000_000, 10_000_000), "larger than 1000000 bytes"),
        (LARGE, Limits(10_000_000, 2_000_000), "larger than 1 MiB unpacked"),
    ],
    ids=["compressed", "as sent", "plain"],
)
def test_an_answer_is_interrupted_where_it_is_too_large(body: bytes, limits: Limits, complaint: str) -> None:
    server = EngineServer(answer=lambda path: (200, body) if path == "/vms" else None)
    with serving(server), connected(server, limits=limits) as connection:
        with pytest.raises(EngineAway, match=complaint):
            connection.get("/vms")
        assert connection.get("/hosts")  # the next one is none the worse for it


def test_within_the_limits_a_compressed_answer_is_whole() -> None:
    with (
        serving(EngineServer(answer=lambda path: (200, gzip.compress(LARGE)))) as server,
        connected(server, limits=Limits(10_000, 4_000_000)) as connection,
    ):
        assert connection.get("/vms") == LARGE


@pytest.mark.parametrize("filling", [b"<a/>", b"<a x='' y=''/>"])
def test_elements_are_counted_before_they_are_made(filling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "_MOST_NODES", 10_000)
    body = b"<vms>" + filling * 12_000 + b"</vms>"
    server = EngineServer(answer=lambda path: (200, body) if path == "/vms" else None)
    with (
        serving(server),
        connected(server, limits=Limits(10**6, 10**6)) as connection,
        pytest.raises(EngineSetupError, match="more than 10,000 elements"),
    ):
        read_snapshot(connection)


@pytest.fixture
def hanging() -> Iterator[tuple[EngineServer, threading.Event]]:
    """An engine that takes requests and answers none until the test is over."""
    entered, over = threading.Event(), threading.Event()

    def hang(path: str) -> None:
        entered.set()
        over.wait(60)

    with serving(EngineServer(answer=hang)) as server:
        yield server, entered
        over.set()


@pytest.mark.system
@pytest.mark.timing
def test_the_end_breaks_off_what_is_under_way(hanging: tuple[EngineServer, threading.Event]) -> None:
    server, entered = hanging
    connection = connected(server, limits=Limits(10**6, 10**6))
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            connection.get("/vms")
        except EngineAway as error:
            errors.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    assert entered.wait(30)
    began = time.monotonic()
    connection.close()
    asker.join(30)
    assert time.monotonic() - began < 2
    assert "is not waited for" in str(errors[0])


@pytest.mark.system
@pytest.mark.timing
def test_a_log_out_that_is_not_answered_is_waited_for_but_briefly() -> None:
    over = threading.Event()
    with serving(EngineServer()) as server:
        server.log_out = lambda: over.wait(60)
        connection = connected(server, limits=Limits(10**6, 10**6))
        assert connection.get("/vms")
        began = time.monotonic()
        connection.close()
        assert time.monotonic() - began < 2
        over.set()
