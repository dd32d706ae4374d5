"""A client that ends its side of a connection still gets the answers to all that it sent."""

from __future__ import annotations

import asyncio
import socket

from ovirt_service.http.connection import TEXT, Connection, Head, HttpRequest, Respond, Response
from ovirt_service.http.listener import Room

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
