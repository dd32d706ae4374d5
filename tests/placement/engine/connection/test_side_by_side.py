"""Threads ask side by side: a slow answer holds up nobody else, and sessions are used again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ovirt_placement.engine.connection.client import EngineAway, EngineFault
from tests.placement.engine_server import EngineServer, connected, serving


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
