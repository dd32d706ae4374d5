"""HTTP: limits of requests and of connections; one that ends its side still gets all its answers."""

import asyncio
import itertools
import socket
import time

import pytest

from ovirt_service.http.connection import (
    TEXT,
    Connection,
    Head,
    HttpError,
    HttpRequest,
    RequestParser,
    Respond,
    Response,
)
from ovirt_service.http.listener import Room

LONGEST = 100
_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1])
def test_a_body_may_be_so_long(length: int) -> None:
    parser = RequestParser(LONGEST)
    parser.buffer += _HEAD + b"Content-Length: %d\r\n\r\n" % length
    if length > LONGEST:
        with pytest.raises(HttpError, match="longer") as refused:
            parser.next()
        assert refused.value.status == 413
    else:
        assert parser.next() is None
        parser.buffer += b"x" * length
        request = parser.next()
        assert request is not None
        assert request.body == b"x" * length


class Guest:
    """One that has not called, and the answer that it got."""

    unsent = 0
    has_called = False

    def __init__(self, waits_for_seconds: float | None) -> None:
        self.waiting_since = None if waits_for_seconds is None else time.monotonic() - waits_for_seconds
        self.aborted = False

    @property
    def idle(self) -> bool:
        return self.waiting_since is not None

    def end(self) -> None:
        self.aborted = True

    def abort(self) -> None:
        self.aborted = True


MOST = 5


@pytest.mark.parametrize(("standing", "entering"), [*itertools.product(range(MOST + 1), range(MOST + 2))])
@pytest.mark.parametrize("waits_for_seconds", [None, 0.0, 3600.0])
def test_one_more_comes_where_there_is_room_with_those_about_to_or_for_one_of_no_use(
    standing: int, entering: int, waits_for_seconds: float | None
) -> None:
    closed: list[int] = []
    room = Room(MOST, lambda: closed.append(1))
    guests = [Guest(waits_for_seconds if number == 0 else None) for number in range(standing)]
    for guest in guests:
        room.add(guest, may_call=True)
    has_room = standing + entering < MOST
    goes = not has_room and standing > 0 and waits_for_seconds == 3600.0
    assert room.make(entering) == (has_room or goes)
    assert [guest.aborted for guest in guests] == [goes and at == 0 for at in range(standing)]
    assert (len(room), len(closed)) == (standing - goes, int(goes))


REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"


class Served:
    """One connection whose answers are given when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Respond] = []

    def answer(self, request: HttpRequest, respond: Respond) -> None:
        self.waiting.append(respond)

    async def until_asked(self) -> Respond:
        while not self.waiting:
            await asyncio.sleep(0)
        return self.waiting.pop()


async def _serve(served: Served, accepted: socket.socket) -> None:
    def check(head: Head) -> None:
        pass

    loop = asyncio.get_running_loop()
    connection = Connection(Room(1, lambda: None), True, check, served.answer, 1 << 10)
    await loop.connect_accepted_socket(lambda: connection, accepted)


async def _received(client: socket.socket) -> bytes:
    received = b""
    while more := await asyncio.get_running_loop().sock_recv(client, 1 << 10):
        received += more
    return received


def _run(sent: bytes, *, answers: int) -> bytes:
    """What a client receives that sends this, then ends its side while the first answer goes."""

    async def run() -> bytes:
        client, accepted = socket.socketpair()
        client.setblocking(False)
        with client:
            served = Served()
            client.sendall(sent)
            await _serve(served, accepted)
            for number in range(answers):
                respond = await served.until_asked()
                if number == 0:
                    # The loop sees the end of the stream in the same round as the answer.
                    client.shutdown(socket.SHUT_WR)
                respond(Response(b"yes", TEXT))
            return await _received(client)

    return asyncio.run(asyncio.wait_for(run(), 10))


def test_a_request_that_waits_is_answered_after_the_end() -> None:
    assert _run(REQUEST * 3, answers=3).count(b"HTTP/1.1 200") == 3


def test_what_is_left_of_half_a_request_keeps_nothing_open() -> None:
    assert _run(REQUEST + REQUEST[:20], answers=1).count(b"HTTP/1.1") == 1
