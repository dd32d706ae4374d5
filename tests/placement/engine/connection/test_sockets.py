"""A process with more than a thousand open files waits for the engine as any other: it does not spin."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from tests.placement.engine_server import PASSWORD, EngineServer, serving

#: These assertions depend on real time.
pytestmark = pytest.mark.timing

#: From this number on `select` takes no descriptor.
FD_SETSIZE = 1024
ANSWER_SECONDS = 0.5


@pytest.fixture
def crowded() -> Iterator[None]:
    """Every further descriptor has a number that is too high."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < FD_SETSIZE:
        opened.append(os.dup(opened[0]))
    yield
    for one in opened:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("crowded")
def test_a_connection_with_a_high_number_is_waited_for_and_answered() -> None:
    never = threading.Event()
    engine = EngineServer(answer=lambda path: never.wait(ANSWER_SECONDS) and None)
    with serving(engine):
        settings = EngineSettings(url=engine.url, username="admin@internal")
        with EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD}) as connection:
            connection.get("/vms")
            worked, began = time.thread_time(), time.monotonic()
            assert b"<vms>" in connection.get("/vms")
            assert time.thread_time() - worked < (time.monotonic() - began) / 4
