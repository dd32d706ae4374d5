"""A process with thousands of open files waits for the engine as any other: neither longer, nor spinning."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from tests.placement.engine_server import PASSWORD, EngineServer

ANSWER_SECONDS = 0.1
#: `select` takes no descriptor from 1,024 on; a request has some of its own.
EDGES = (1014, 1024, 2000)
#: How much longer the requests of the full process may take, how many are timed together, and how often: the
#: shortest time of each is what they cost, however busy the machine is.
MOST = 1.5
REQUESTS = 4
ROUNDS = 60


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def full_below(number: int) -> Iterator[None]:
    """Let each further descriptor have this number or a higher one."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < number - 1:
        opened.append(os.dup(opened[0]))
    try:
        yield
    finally:
        for one in opened:
            os.close(one)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("number", EDGES)
def test_a_request_takes_as_long_however_many_files_are_open(
    engine: EngineServer, number: int, method: str
) -> None:
    engine.answer = lambda path: (200, b"<done/>")
    shortest = {True: 60.0, False: 60.0}
    with contextlib.ExitStack() as stack:
        few = stack.enter_context(connected(engine))
        with full_below(number):
            many = stack.enter_context(connected(engine))
        for _ in range(ROUNDS):
            shortest[False] = min(shortest[False], seconds(few, method))
            with full_below(number):
                shortest[True] = min(shortest[True], seconds(many, method))
            if shortest[True] <= MOST * shortest[False]:
                break
    assert shortest[True] <= MOST * shortest[False]


@pytest.mark.parametrize("number", [20, 2000])
def test_an_answer_that_takes_its_time_is_waited_for_without_work(engine: EngineServer, number: int) -> None:
    never = threading.Event()
    engine.answer = lambda path: (
        (200, b"<first/>") if path == "/first" else (never.wait(ANSWER_SECONDS), None)[1]
    )
    with full_below(number), connected(engine) as connection:
        worked, began = time.thread_time(), time.monotonic()
        assert b"<vms>" in connection.get("/vms")
        assert time.thread_time() - worked < (time.monotonic() - began) / 4


def connected(engine: EngineServer) -> EngineConnection:
    """A connection that is logged in: its descriptors have their numbers."""
    settings = EngineSettings(url=engine.url, username="admin@internal")
    connection = EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD})
    connection.send("POST", "/first")
    return connection


def seconds(connection: EngineConnection, method: str) -> float:
    began = time.perf_counter()
    for _ in range(REQUESTS):
        connection.send(method, "/vms")
    return time.perf_counter() - began
