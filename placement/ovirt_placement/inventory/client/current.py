"""The library's one way to know the engine: what is published, else the engine itself."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

from msgspec.structs import replace

from ovirt_placement import config as configuration
from ovirt_placement.config import Config, EngineSettings, StoreSettings
from ovirt_placement.inventory.client.asking import Services
from ovirt_placement.inventory.client.direct import DirectReader
from ovirt_placement.inventory.client.keys import levels, names_host_tags, searches
from ovirt_placement.inventory.client.overlay import IntentOverlay, KeyOverlay
from ovirt_placement.inventory.expected import current as expected
from ovirt_placement.inventory.expected import places
from ovirt_placement.inventory.on_demand.statistics import Measured
from ovirt_placement.inventory.published import publication
from ovirt_placement.inventory.published.protocol import NoAnswer, NoService, Refresh, Wake
from ovirt_placement.inventory.published.publication import Damaged, Publication
from ovirt_placement.lookups.index import share
from ovirt_placement.model import Snapshot
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
    """What one process keeps between two calls: decoded snapshots, connections, the configuration."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.config: Config | None = None
        self.publications: dict[Path, Publication] = {}
        self.services = Services()
        #: By engine, and whether the tags of hosts are read.
        self.direct_readers: dict[tuple[EngineSettings, bool], DirectReader] = {}
        #: By store and engine: several engines may share a store.
        self.intents: dict[tuple[StoreSettings, str], IntentOverlay] = {}
        self.keys: dict[tuple[StoreSettings, str], KeyOverlay] = {}
        #: What a parent process had open: closing it here would say good-bye in the parent's name.
        self.inherited: Self | None = None

    def after_fork(self) -> Self:
        child = type(self)()
        child.config, child.publications = self.config, self.publications
        child.inherited = self
        return child


_process = _Process()


def _forked() -> None:
    global _process
    _process = _process.after_fork()


os.register_at_fork(after_in_child=_forked)


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
    measured: Measured = Measured.FOR_RESERVATION,
) -> Base:
    """What `known` returns, without what is expected; `until` is a moment of `time.monotonic`."""
    max_age = config.inventory.max_age_seconds if max_age is None else max_age
    published, unreadable = _published(config.inventory.directory)
    lacks_vm = vm is not None and published is not None and vm not in published.snapshot.vm_by_id
    if published is None or published.age_seconds > max_age or lacks_vm:
        not_before = publication.now() - max_age
        try:
            question = Refresh(not_before, whole=max_age <= 0, vm=vm, unreadable=unreadable)
            published = _refreshed(config.inventory.directory, question, until)
        except NoService:
            as_of = publication.now() - max_age
            return Base(_with_intents(_direct(config, max_age, until, measured), config), None, as_of)
    return Base(_with_intents(published.snapshot, config), published, published.moments.as_of)


def last_base(config: Config) -> Base | None:
    """What this process has read last, published or not, however old; None if that is nothing."""
    published, _ = _published(config.inventory.directory)
    with _process.lock:
        reader = _process.direct_readers.get((config.engine, config.ha.tagged))
    read = reader.last() if reader is not None else None
    if read is not None and (published is None or read[1] > published.moments.as_of):
        return Base(_with_intents(_keyed(read[0], config), config), None, read[1])
    if published is None:
        return None
    return Base(_with_intents(published.snapshot, config), published, published.moments.as_of)


def wait_for_change(timeout: float, *, config: Config | None = None) -> bool:
    """Wait until the service publishes another version than this process has seen; whether it did in time.

    Raises `NoService`, mostly at once, if there is nobody to wake us.
    """
    config = config or configured()
    directory = config.inventory.directory
    seen = _process.publications.get(directory)
    try:
        _process.services.ask(directory, Wake(0 if seen is None else seen.version), timeout)
    except NoAnswer:
        return False
    return True


def configured() -> Config:
    """The configuration that this process has read."""
    with _process.lock:
        if _process.config is None:
            _process.config = configuration.load()
        return _process.config


def _published(directory: Path) -> tuple[Publication | None, int | None]:
    """Read what is published, decoding it once a version for all threads; and a version that is damaged."""
    with _process.lock:
        known = _process.publications.get(directory)
        try:
            found = publication.read(directory, known)
        except Damaged as damaged:
            return None, damaged.version
        if found is not None:
            if known is not None and found.snapshot is not known.snapshot:
                share(found.snapshot, like=known.snapshot)
            _process.publications[directory] = found
        return found, None


def _refreshed(directory: Path, question: Refresh, until: float) -> Publication:
    """What the service has published once it has answered.

    Raises `NoService` if that cannot be read, even after the service was asked to repair it.
    """
    for _ in range(_READINGS):
        try:
            reply = _process.services.ask(directory, question, until - time.monotonic())
        except NoAnswer:
            raise NoSnapshot(
                f"no fresh snapshot in time: the inventory at {directory} is still reading"
            ) from None
        published, unreadable = _published(directory)
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


def _direct(config: Config, max_age: float, until: float, measured: Measured) -> Snapshot:
    with _process.lock:
        asked = config.engine, config.ha.tagged
        if asked not in _process.direct_readers:
            folder = places.find(config)
            _process.direct_readers[asked] = DirectReader(
                config.engine, tagged=config.ha.tagged, folder=folder
            )
        reader = _process.direct_readers[asked]
    keys = _keys(config)
    records = keys.look()
    try:
        found = reader.read(
            max_age,
            until,
            levels(records),
            measured,
            host_tags=names_host_tags(records),
            searches=searches(records),
        )
    except UserError as error:
        raise NoSnapshot(f"no snapshot: {error}") from error
    except OSError as error:  # no descriptors are left, say: it may pass
        raise NoSnapshot(f"no snapshot: {error.strerror or error}") from error
    if found is None:
        raise NoSnapshot(f"no snapshot in time: {config.engine.url} has not answered yet")
    return keys.over(found, records)


def _keyed(found: Snapshot, config: Config) -> Snapshot:
    keys = _keys(config)
    return keys.over(found, keys.look())


def _keys(config: Config) -> KeyOverlay:
    rows = config.store, config.engine.name
    with _process.lock:
        return _process.keys.setdefault(rows, KeyOverlay(*rows))


def _with_intents(base: Snapshot, config: Config) -> Snapshot:
    """Lay the open intents over the snapshot: what is decided, and cannot be seen yet."""
    with _process.lock:
        rows = config.store, config.engine.name
        intents = _process.intents.get(rows)
        if intents is None:
            intents = _process.intents[rows] = IntentOverlay(*rows)
    return intents.over(base)
