"""Clients that ask for starts at once: plain HTTP on one event loop, so that they cost the machine little."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from tests.configuration import PASSWORD

_TOKEN = "/ovirt-engine/sso/oauth/token"


@dataclass(frozen=True)
class Answer:
    """What a client was answered, when it was; None if the engine was lost or took too long."""

    vm: str
    status: int | None
    body: str = ""

    @property
    def refused(self) -> bool:
        return self.status is not None and self.status != 200


@dataclass(frozen=True)
class Burst:
    """All answers, and how long it took until the last one."""

    answers: tuple[Answer, ...]
    seconds: float

    @property
    def refused(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.answers if answer.refused)

    @property
    def lost(self) -> tuple[str, ...]:
        """VMs of whose start nobody knows what came of it."""
        return tuple(answer.vm for answer in self.answers if answer.status is None)


#: Is called after each answer with how many there are by now.
Answered = Callable[[int], Awaitable[None]]


def log_in(url: str) -> str:
    """Get a token that holds for all clients."""
    asked = {
        "grant_type": "password",
        "scope": "ovirt-app-api",
        "username": "admin@internal",
        "password": PASSWORD,
    }
    request = Request(url + _TOKEN, urlencode(asked).encode(), {"Accept": "application/json"})
    with urlopen(request, timeout=30) as reply:
        return str(json.load(reply)["access_token"])


def start_all(
    url: str, token: str, vms: Sequence[str], *, patience: float, answered: Answered | None = None
) -> Burst:
    """Ask for all these starts at the same time, and wait at most this many seconds for their answers."""
    return asyncio.run(_start_all(url, token, vms, patience, answered))


async def _start_all(
    url: str, token: str, vms: Sequence[str], patience: float, answered: Answered | None
) -> Burst:
    began = time.monotonic()
    count = 0

    async def one(vm: str) -> Answer:
        nonlocal count
        try:
            async with asyncio.timeout(patience):
                answer = await _start(url, token, vm)
        except (OSError, TimeoutError, EOFError):
            return Answer(vm, None)
        count += 1
        if answered is not None:
            await answered(count)
        return answer

    answers = await asyncio.gather(*map(one, vms))
    return Burst(tuple(answers), time.monotonic() - began)


async def _start(url: str, token: str, vm: str) -> Answer:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(
            f"POST /ovirt-engine/api/vms/{vm}/start HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/xml\r\n"
            "Connection: close\r\nContent-Length: 9\r\n\r\n<action/>".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        return Answer(vm, int(head.split(maxsplit=2)[1]), (await reader.read()).decode())
    finally:
        writer.close()
