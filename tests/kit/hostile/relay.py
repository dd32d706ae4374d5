"""Stands between all and the engine, and passes on its answers whole, slowly, or in part."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from enum import IntEnum
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from tests.processes import PROCESSES, acting

_DRIP_SECONDS = 1.0
_POLL_SECONDS = 0.1


class Passing(IntEnum):
    WHOLE = 0
    #: From the middle of an answer on, a byte a second.
    DRIPPING = 1
    #: Nothing after the middle of an answer.
    STOPPING = 2


class EngineRelay:
    """A process of its own, at `url`, to which this one says how answers are passed on."""

    def __init__(self, url: str, passing: Any) -> None:
        self.url = url
        self._passing = passing

    @contextmanager
    def passes(self, how: Passing) -> Iterator[None]:
        self._passing.value = how
        try:
            yield
        finally:
            self._passing.value = Passing.WHOLE


@contextmanager
def relayed(engine: str) -> Iterator[EngineRelay]:
    end, theirs = PROCESSES.Pipe()
    passing = PROCESSES.Value("i", Passing.WHOLE)
    with acting(_be_relay, theirs, urlsplit(engine).port, passing):
        yield EngineRelay(f"http://127.0.0.1:{end.recv()}", passing)


def _be_relay(end: Connection, engine: int, passing: Any) -> None:
    """Be the process."""

    #: Nothing else refers to them.
    relaying = set[Any]()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relaying.add(task := asyncio.current_task())
        with suppress(OSError), closing(writer):
            answers, requests = await asyncio.open_connection("127.0.0.1", engine)
            with closing(requests):
                asking = asyncio.ensure_future(copy(reader, requests))
                try:
                    await copy(answers, writer, of_engine=True)
                finally:
                    asking.cancel()
        relaying.discard(task)

    async def copy(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, of_engine: bool = False
    ) -> None:
        while data := await reader.read(1 << 16):
            if of_engine and passing.value != Passing.WHOLE:
                writer.write(data[: len(data) // 2])
                data = await rest(data[len(data) // 2 :], writer)
            writer.write(data)
            await writer.drain()

    async def rest(data: bytes, writer: asyncio.StreamWriter) -> bytes:
        """Wait as it is to be; what is left then."""
        while data and passing.value == Passing.DRIPPING:
            writer.write(data[:1])
            data = data[1:]
            await writer.drain()
            await asyncio.sleep(_DRIP_SECONDS)
        while passing.value == Passing.STOPPING:
            await asyncio.sleep(_POLL_SECONDS)
        return data

    async def serve() -> None:
        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        end.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
