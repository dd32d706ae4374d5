"""The library's one way to know the engine: what is published, else the engine itself."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

from msgspec.structs import replace

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement.inventory.client.asking import Services
from ovirt_placement.inventory.client.keys import levels, names_host_tags, searches
from ovirt_placement.inventory.client.opened import Opened, OpenEngines
from ovirt_placement.inventory.expected import current as expected
from ovirt_placement.inventory.on_demand.statistics import Measured
from ovirt_placement.inventory.published import publication
from ovirt_placement.inventory.published.protocol import NoAnswer, NoService, Refresh, Wake
from ovirt_placement.inventory.published.publication import Damaged, Publication
from ovirt_placement.lookups.index import share
from ovirt_placement.model import Snapshot
from ovirt_service.entry import at_end
from ovirt_service.errors import UserError
from ovirt_service.saying import Said

#: How long a caller who names no deadline waits for a snapshot.
DEFAULT_DEADLINE_SECONDS = 10.0
#: What cannot be read is reported, and read once more.
_READINGS = 2

_log = logging.getLogger(__name__)
_said = Said()


class NoSnapshot(UserError):
    """Nothing fresh enough is known of the engine, and nothing came in time."""


class Awaited(NoSnapshot):
    """The engine is being asked for the VM: an answer will be known in a moment."""


class Known(NamedTuple):
    """The engine's state, and where it is from."""

    snapshot: Snapshot
    #: What the inventory service published, of which it is made; None where the engine itself was read.
    publication: Publication | None


class Base(NamedTuple):
    """The engine's state with the open intents of the store, and without what is expected."""

    snapshot: Snapshot
    publication: Publication | None
    #: The moment at which it was true.
    as_of: float


class _Process:
    """What one process keeps between two calls: what it has open, the configuration, services that hang."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.config: Config | None = None
        self.services = Services()
        self.engines = OpenEngines()

    def after_fork(self) -> Self:
        child = type(self)()
        child.config, child.engines = self.config, self.engines.after_fork()
        return child


_process = _Process()


def _forked() -> None:
    global _process
    _process = _process.after_fork()


os.register_at_fork(after_in_child=_forked)


@contextmanager
def using(config: Config) -> Iterator[None]:
    """Keep what is open for these settings, whatever else this process asks for meanwhile."""
    with _using(config):
        yield


def close() -> None:
    """Log out of engines and close stores, at the end of a command; who asks again opens them again."""
    global _process
    ended, _process = _process, _Process()
    ended.engines.close()
    expected.close()


def snapshot(
    *,
    config: Config | None = None,
    max_age: float | None = None,
    deadline: float | None = None,
    vm: str | None = None,
) -> Snapshot:
    """Return the engine's state: no older than `max_age` seconds, and within `deadline` seconds from now.

    A published snapshot that is fresh enough costs no request: one is while the engine, asked a moment ago,
    reports no change. Else the inventory service is asked for a newer one, at the cost of one refresh that
    all who wait share; where no service runs, this process reads the engine itself. With a `max_age` of 0
    everything is read again, for who may not rely on events: the engine can log one late.
    Open intents of the store stand in `pending`, and so does what was decided on this machine a moment ago;
    a rule leaves out those of the VM that it is asked about.
    Placement keys are published with the snapshot, as fresh as the rest; where no service runs, the store is
    asked for them.
    With `vm`, the engine is asked for this VM, if it was not lately and the VM is not among those that are
    known: events of a VM that has just come may be late.
    Without arguments the configuration says what is fresh, and the deadline is 10 s.

    Raises `NoSnapshot` if none comes in time, `UserError` if the configuration is at fault.
    """
    return known(config=config, max_age=max_age, deadline=deadline, vm=vm).snapshot


def known(
    *,
    config: Config | None = None,
    max_age: float | None = None,
    deadline: float | None = None,
    vm: str | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Known:
    """Return what `snapshot` does, and where it is from.

    What nobody needs `measured` is not read where no service runs: it takes longer than all the rest.
    """
    config = config or configured()
    until = time.monotonic() + (DEFAULT_DEADLINE_SECONDS if deadline is None else deadline)
    base = read_base(config, max_age, until, vm=vm, measured=measured)
    return Known(expected.over(base.snapshot, base.as_of, config), base.publication)


def read_base(
    config: Config,
    max_age: float | None,
    until: float,
    *,
    vm: str | None = None,
    patient: bool = True,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Base:
    """What `known` returns, without what is expected; `until` is a moment of `time.monotonic`.

    Who is not `patient` waits for no VM that the service looks for: raises `Awaited` at once.
    """
    max_age = config.inventory.max_age_seconds if max_age is None else max_age
    with _using(config) as opened:
        published, unreadable = _published(opened)
        lacks_vm = vm is not None and published is not None and vm not in published.snapshot.vm_by_id
        if published is None or published.age_seconds > max_age or lacks_vm:
            not_before = publication.now() - max_age
            try:
                question = Refresh(not_before, max_age <= 0, vm, unreadable, patient)
                published = _refreshed(opened, question, until)
            except NoService:
                as_of = publication.now() - max_age
                return Base(opened.intents.over(_direct(opened, max_age, until, measured)), None, as_of)
        return Base(opened.intents.over(published.snapshot), published, published.moments.as_of)


def last_base(config: Config) -> Base | None:
    """What this process has read last, published or not, however old; None if that is nothing."""
    with _using(config) as opened:
        published, _ = _published(opened)
        read = opened.reader.last()
        if read is not None and (published is None or read[1] > published.moments.as_of):
            keyed = opened.keys.over(read[0], opened.keys.look())
            return Base(opened.intents.over(keyed), None, read[1])
        if published is None:
            return None
        return Base(opened.intents.over(published.snapshot), published, published.moments.as_of)


def wait_for_change(timeout: float, *, config: Config | None = None) -> bool:
    """Wait until the service publishes another version than this process has seen; whether it did in time.

    Raises `NoService`, mostly at once, if there is nobody to wake us.
    """
    config = config or configured()
    with _using(config) as opened:
        seen = opened.publication
        try:
            wake = Wake(0 if seen is None else seen.version)
            _process.services.ask(config.inventory.directory, wake, timeout)
        except NoAnswer:
            return False
        return True


def configured() -> Config:
    """The configuration that this process has read."""
    with _process.lock:
        if _process.config is None:
            _process.config = configuration.load()
        return _process.config


@contextmanager
def _using(config: Config) -> Iterator[Opened]:
    at_end(close)
    with _process.engines.using(config) as opened:
        yield opened


def _published(opened: Opened) -> tuple[Publication | None, int | None]:
    """Read what is published, decoding it once a version for all threads; and a version that is damaged."""
    with opened.lock:
        known = opened.publication
        try:
            found = publication.read(opened.config.inventory.directory, known)
        except Damaged as damaged:
            return None, damaged.version
        if found is not None:
            if known is not None and found.snapshot is not known.snapshot:
                share(found.snapshot, like=known.snapshot)
            opened.publication = found
        return found, None


def _refreshed(opened: Opened, question: Refresh, until: float) -> Publication:
    """What the service has published once it has answered.

    Raises `NoService` if that cannot be read, even after the service was asked to repair it.
    """
    directory = opened.config.inventory.directory
    for _ in range(_READINGS):
        try:
            reply = _process.services.ask(directory, question, until - time.monotonic())
        except NoAnswer:
            raise NoSnapshot(
                f"no fresh snapshot in time: the inventory at {directory} is still reading"
            ) from None
        if reply.awaited:
            raise Awaited("the engine is being asked for a VM that it has not shown yet")
        published, unreadable = _published(opened)
        if published is not None or reply.error is not None:
            break
        question = replace(question, unreadable=unreadable or 0)
    else:
        if _said.is_news((directory, "unreadable")):
            _log.warning("what the inventory at %s publishes cannot be read: the engine is", directory)
        raise NoService
    if reply.error is not None or published is None or published.moments.as_of < question.not_before:
        last = "" if published is None else f"; the last one is {published.age_seconds:.0f} s old"
        raise NoSnapshot(f"no fresh snapshot: {reply.error or 'the inventory has published none'}{last}")
    return published


def _direct(opened: Opened, max_age: float, until: float, measured: Measured) -> Snapshot:
    records = opened.keys.look()
    try:
        found = opened.reader.read(
            max_age,
            until,
            levels(records),
            measured,
            host_tags=names_host_tags(records),
            searches=searches(records),
        )
    except UserError as error:
        raise NoSnapshot(str(error)) from error
    except OSError as error:  # no descriptors are left, say: it may pass
        raise NoSnapshot(error.strerror or str(error)) from error
    if found is None:
        raise NoSnapshot(f"{opened.config.engine.address}: the engine has not answered yet")
    return opened.keys.over(found, records)
