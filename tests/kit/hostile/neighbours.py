"""Hostile neighbours: each a context manager over a site, with a strength: 1 is what has done harm.

Those that speak HTTP or hold connections are one process each, with an event loop.
"""

import asyncio
import os
import random
import signal
import ssl
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xmlrpc.client import dumps

from tests.kit.hostile import processors
from tests.kit.hostile.relay import Passing
from tests.kit.hostile.site import COOKIE, GROUP, MEMBER, ROOT, Site
from tests.processes import acting
from tests.repeating import repeating

#: That of all neighbours: together they have the weight of one part.
_GROUP = "neighbours"
Address = tuple[str, int]
Neighbour = Callable[[Site, float], AbstractContextManager[None]]

_PATIENCE_SECONDS = 60.0
_DRIP_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
#: Files of a folder that are linked.
_MOST_LINKS = 20
#: Whose connection was closed comes again after so long.
_RETURN_SECONDS = 1.0


class Client(NamedTuple):
    """What one of the clients does again and again, until it is ended; all of it can be pickled."""

    act: Callable[..., Awaitable[None]]
    arguments: tuple[object, ...]
    #: How many at once for a strength of 1.
    at_once: int


# -- clients
async def hold(address: Address, first: bytes, drip: bytes) -> None:
    """Connect, send this, and from then on a piece now and then, until the other side closes."""
    reader, writer = await asyncio.open_connection(*address)
    with closing(writer):
        writer.write(first)
        while not reader.at_eof():
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(4096), _DRIP_SECONDS)
            writer.write(drip)
            await writer.drain()


async def leave(address: Address) -> None:
    """Connect, end our direction, and never close."""
    reader, writer = await asyncio.open_connection(*address)
    with closing(writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: loc")
        writer.write_eof()
        await reader.read()


async def ask(address: Address, requests: tuple[bytes, ...], tls: bool = False) -> None:
    """Send one of the requests with something new in it, and read the answer."""
    context = ssl._create_unverified_context() if tls else None
    reader, writer = await asyncio.open_connection(*address, ssl=context)
    with closing(writer):
        new = uuid.uuid4()
        head, _, body = random.choice(requests).replace(b"$NEW", str(new).encode()).partition(b"\r\n\r\n")
        length = f"\r\nHost: {address[0]}:{address[1]}\r\nConnection: close\r\nContent-Length: {len(body)}"
        writer.write(head + length.encode() + b"\r\n\r\n" + body)
        await asyncio.wait_for(reader.read(), _PATIENCE_SECONDS)


def be_clients(clients: list[Client], strength: float, groups: Path | None) -> None:
    """Be the process."""
    processors.join(groups, _GROUP)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    async def again(client: Client) -> None:
        while True:
            with suppress(OSError, TimeoutError, EOFError):
                await client.act(*client.arguments)
            await asyncio.sleep(_PAUSE_SECONDS if client.act is ask else _RETURN_SECONDS)

    async def all_of_them() -> None:
        numbers = (range(max(1, round(one.at_once * strength))) for one in clients)
        await asyncio.gather(
            *(again(one) for one, count in zip(clients, numbers, strict=True) for _ in count)
        )

    asyncio.run(all_of_them())


def _clients(
    make: Callable[[Site], list[Client]], site: Site, strength: float
) -> AbstractContextManager[None]:
    return acting(be_clients, make(site), strength, site.groups)


def _holding(first: bytes, drip: bytes, at_once: int, site: Site) -> list[Client]:
    return [Client(hold, (address, first, drip), at_once) for address in site.addresses]


def _half_open(site: Site) -> list[Client]:
    return [Client(leave, (address,), 300) for address in site.addresses]


def _slow_bodies(site: Site) -> list[Client]:
    page, proxy = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\n"
        "Content-Length: 900000\r\n\r\n".encode()
        for (host, port), path, kind in zip(
            site.addresses,
            (f"{ROOT}/log-in", "/"),
            ("application/x-www-form-urlencoded", "text/xml"),
            strict=True,
        )
    )
    return [
        Client(hold, (address, first, b"<"), 150)
        for address, first in zip(site.addresses, (page, proxy), strict=True)
    ]


def _bearers(token: str, site: Site) -> list[Client]:
    head = f"GET {ROOT}/api/v1/clusters HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    return [Client(ask, (site.addresses[0], (head.encode(),), site.authority is not None), 60)]


def _dear_questions(site: Site) -> list[Client]:
    cluster = site.state.clusters[0].name
    hosts = "&".join(f"host={host.name}" for host in site.state.hosts[:20])
    heads = [
        f"GET {ROOT}{path} HTTP/1.1\r\nCookie: {COOKIE}={site.reader}\r\n\r\n".encode()
        for path in (f"/maintenance/{cluster}?{hosts}", f"/plan/{cluster}/now", f"/ha/{cluster}")
    ]
    return [Client(ask, (site.addresses[0], tuple(heads), site.authority is not None), 60)]


def _proxy_call(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n" + body


def _unknown_vms(site: Site) -> list[Client]:
    hosts = [host.id for host in site.state.hosts]
    call = dumps((["AffinityFilter"], hosts, "$NEW", {}), "runFilters")
    return [Client(ask, (site.addresses[1], (_proxy_call(call.encode()),)), 8)]


_BAD_XML = (
    b"",
    b"<",
    b"<?xml version='1.0'?><methodCall><methodName>runFilters</methodName><params><param>",
    b"<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;&b;&b;'>]><methodCall>&c;</methodCall>",
    b"<methodCall>" * 20_000,
    b"<methodCall><methodName>discover</methodName><params><param><value><int>1e9</int></value></param></params>",
    b"\xff\xfe\x00" * 2000,
    b"<a " + b"b='c' " * 20_000 + b"/>",
)


def _malformed_xml(site: Site) -> list[Client]:
    return [Client(ask, (site.addresses[1], tuple(map(_proxy_call, _BAD_XML))), 8)]


# -- others
def _be_local_user(folder: Path, outside: Path, groups: Path | None) -> None:
    """Link whatever is there, and the names of what may come, again and again, as a member of the group."""
    processors.join(groups, _GROUP)
    os.setgroups([])
    os.setgid(GROUP)
    os.setuid(MEMBER)
    names = (
        "store.db", "store.db-journal", "store.db-wal", "store.db.made", "snapshot.tmp", ".new", "journal",
    )  # fmt: skip
    while True:
        for place, _, files in os.walk(folder):
            theirs = [file for file in files if not file.endswith((".link", ".tmp"))][:_MOST_LINKS]
            for name in (*names, *(f"{file}.tmp" for file in theirs)):
                with suppress(OSError):
                    Path(place, name).symlink_to(outside / name)
            for file in theirs:
                with suppress(OSError):
                    Path(place, f"{file}.link").hardlink_to(Path(place, file))
        threading.Event().wait(_PAUSE_SECONDS)


@contextmanager
def local_user(site: Site, strength: float) -> Iterator[None]:
    """A user of the group, with links in every folder of ours; nothing outside may come of them."""
    outside = site.folder.with_name("outside")
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    try:
        with ExitStack() as users:
            for _ in range(max(1, round(strength))):
                users.enter_context(acting(_be_local_user, site.folder, outside, site.groups))
            yield
            assert not list(outside.iterdir()), "a link was followed"
    finally:
        for place in site.folder.rglob("*"):
            if place.lstat().st_uid == MEMBER or place.name.endswith(".link"):
                place.unlink()
        for made in outside.iterdir():
            made.unlink()
        outside.rmdir()


@contextmanager
def hanging_engine(site: Site, strength: float) -> Iterator[None]:
    """An engine that accepts connections and answers none."""
    site.freeze_engine()
    try:
        yield
    finally:
        site.thaw_engine()


@contextmanager
def answering_in_part(how: Passing, site: Site, strength: float) -> Iterator[None]:
    """An engine that begins its answers and ends none, or no sooner than anybody waits."""
    with site.relay.passes(how):
        yield


@contextmanager
def full_disk(site: Site, strength: float) -> Iterator[None]:
    """A file that takes all room, and again what becomes free."""
    filler = site.folder / "filler"

    def fill() -> None:
        with filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while file.write(b"\0" * size) == size:
                        pass

    try:
        with repeating(fill, every=_PAUSE_SECONDS):
            yield
    finally:
        filler.unlink()


@contextmanager
def endless_command(site: Site, strength: float) -> Iterator[None]:
    """A `blocked_by` that never ends, ignores SIGTERM, floods its output and leaves its session."""
    site.command(f"ovirt-enforcer maintenance run {site.state.hosts[0].name} --work nothing --in-order")
    try:
        yield
    finally:
        site.command("ovirt-enforcer maintenance stop")


_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
#: By their names; what takes room or the engine away comes last: others begin by writing.
NEIGHBOURS: Mapping[str, Neighbour] = {
    "silent connections": partial(_clients, partial(_holding, b"", b"", 1200)),
    "half-open connections": partial(_clients, _half_open),
    "slow heads": partial(_clients, partial(_holding, _HEAD, b"X-A: b\r\n", 150)),
    "slow bodies": partial(_clients, _slow_bodies),
    "invented tokens": partial(_clients, partial(_bearers, "$NEW")),
    "expired tokens": lambda site, strength: _clients(partial(_bearers, site.expired), site, strength),
    "dear questions": partial(_clients, _dear_questions),
    "unknown VMs": partial(_clients, _unknown_vms),
    "malformed XML": partial(_clients, _malformed_xml),
    "local user": local_user,
    "endless command": endless_command,
    "hanging engine": hanging_engine,
    "full disk": full_disk,
}
#: Where the engine's answers pass the relay.
ENGINES: Mapping[str, Neighbour] = {
    "dripping engine": partial(answering_in_part, Passing.DRIPPING),
    "engine that stops within an answer": partial(answering_in_part, Passing.STOPPING),
}
