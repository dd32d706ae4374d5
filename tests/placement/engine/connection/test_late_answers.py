"""A late answer is reported in the same words, by the limit of the one that asks or of the connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import requests

from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.engine.connection.failures import Cause, Unanswered, of_requests

SECONDS = 0.3


@pytest.fixture
def silent() -> Iterator[str]:
    """Where connections are taken, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def never() -> bool:
    return False


def test_the_one_that_asks_notices_first(silent: str) -> None:
    with pytest.raises(Unanswered, match=r"^no answer within 0\.3 s$") as raised:
        ask_once(silent, {}, {}, trust=Trust(None, insecure=False), seconds=SECONDS, ended=never)
    assert raised.value.cause is Cause.LOST


def test_the_connection_notices_first(silent: str) -> None:
    with pytest.raises(requests.ReadTimeout) as raised:
        requests.get(silent, timeout=SECONDS)
    unanswered = of_requests(raised.value, SECONDS)
    assert (unanswered.cause, str(unanswered)) == (Cause.LOST, "no answer within 0.3 s")
