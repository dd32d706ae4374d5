"""A process with thousands of open files waits for the engine as any other: neither longer, nor spinning."""

import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ovirt_placement.engine.connection.client import EngineConnection
from tests.placement.engine_server import EngineServer, connected, serving

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
    began = time.perf_counter()
    for _ in range(REQUESTS):
        connection.send(method, "/vms")
    return time.perf_counter() - began


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
