"""What the store says of an engine: open intents and placement keys, laid over its state."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import asdict, replace

from ovirt_placement.config import StoreSettings
from ovirt_placement.inventory.on_demand import (
    NO_DEMANDS,
    NO_STATISTICS,
    VM_TAGS,
    Demands,
    referred,
    searches_of,
)
from ovirt_placement.lookups import share, with_more_pending
from ovirt_placement.model import Pending, Snapshot
from ovirt_placement.model.record import CLUSTER, NODE, SERVER
from ovirt_placement.model.snapshot import HOST_TAGS, STORED
from ovirt_service.errors import UserError
from ovirt_service.log import Complaint
from ovirt_service.process import in_background

if TYPE_CHECKING:
    from ovirt_placement.store.enforcer.intents import Intent
    from ovirt_placement.store.keys import KeyRecords, KeyStore
    from ovirt_placement.store.sql.access import StoreAccess

#: The first answer has nothing known to fall back on: a store that answers may take longer.
_FIRST_SECONDS = 1.0
_NEVER = float("-inf")
#: Parts of the store, which are loaded where there is one.
_INTENTS, _KEYS = "ovirt_placement.store.enforcer.intents.Store", "ovirt_placement.store.keys.KeyStore"

_Found = TypeVar("_Found")

_log = logging.getLogger(__name__)


class StoreReader(Generic[_Found]):
    """What a store said last, for all threads of a process; it is asked in a thread of its own."""

    def __init__(
        self,
        settings: StoreSettings,
        engine: str,
        nothing: _Found,
        part: str,
        ask: Callable[[Any, _Found], _Found],
    ) -> None:
        """`part` names a part of the store, of which `ask`, given what was found last, asks something.

        A store that is not there, or has no tables yet, holds `nothing`; one that held more is away.
        """
        self._settings, self._engine = settings, engine
        self._nothing = self.found = nothing
        self._part, self._ask = part, ask
        self._store: StoreAccess | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._reading: Future[None] | None = None
        #: Why the last reading found nothing; empty if it did.
        self.error = "the store has not answered yet"
        #: Whether a reading has ended, well or not: where there is no store yet, none began.
        self._answered = False

    def ask_store(self, first_seconds: float = _FIRST_SECONDS, later_seconds: float = 0.0) -> bool:
        """Ask the store now, and wait for its answer; whether it came, be it an error.

        It waits as long as is configured, or longer if asked to: until there was a first answer, and for
        later ones. A reading that began earlier is waited for, too, and goes on after that.
        """
        if not _loaded(self._settings.url):
            lost = f"store {self._settings.url}: is not there any more"
            self.error = "" if self.found == self._nothing else lost
            return True
        longer = later_seconds if self._answered else first_seconds
        patience = max(self._settings.patience_seconds, longer)
        until = time.monotonic() + patience
        earlier = self._reading
        if earlier is not None and not wait([earlier], patience).done:
            return False
        with self._lock:
            if self._reading is None:
                self._reading = in_background(self._read, "store")
            reading = self._reading
        return bool(wait([reading], until - time.monotonic()).done)

    def close(self) -> None:
        """Close the store; a reading that is under way closes it at its end."""
        with self._lock:
            self._closed = True
            idle = self._reading is None
        if idle and self._store is not None:
            self._store.close()

    def _read(self) -> None:
        from ovirt_placement.store.sql.database import StoreUnmade

        error = ""
        try:
            if self._store is None:
                url, patience = self._settings.url, self._settings.patience_seconds
                made = _part_of_store(self._part)
                self._store = made(url, engine=self._engine, patience_seconds=patience, create=False)
            self.found = self._ask(self._store, self.found)
        except UserError as failure:
            is_nothing = isinstance(failure, StoreUnmade) and self.found == self._nothing
            error = "" if is_nothing else str(failure)
        except Exception as failure:
            error = f"reading the store failed: {failure}"
            if error != self.error:
                _log.exception("reading the store failed")
        with self._lock:
            self.error, self._answered, self._reading = error, True, None
            closed = self._closed
        if closed and self._store is not None:
            self._store.close()


def _loaded(url: str) -> bool:
    """Load the database's code, which takes longer than any store may: before the time runs.

    It is not loaded where there is no store at all, nor has been, and that is false.
    """
    path = url.removeprefix("sqlite:///")
    try:
        if path != url:
            os.stat(path)
    except FileNotFoundError:
        if not os.path.exists(f"{path}.made"):
            return False
    except OSError:
        pass  # opening it reports what is wrong
    for part in (_INTENTS, _KEYS):
        _part_of_store(part)
    return True


def _part_of_store(part: str) -> Callable[..., StoreAccess]:
    module, _, name = part.rpartition(".")
    found: Callable[..., StoreAccess] = getattr(importlib.import_module(module), name)
    return found


class Overlay:
    """Lays what is pending over a snapshot; the same object comes again, with what it has indexed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The snapshot that came last, and what was made of it.
        self._last: tuple[Snapshot, Snapshot] | None = None

    def over(self, base: Snapshot, pending: tuple[Pending, ...]) -> Snapshot:
        """The snapshot with this besides; look-ups are derived from the one before, as far as they differ."""
        with self._lock:
            before, self._last = self._last, None
            if not pending:
                return base
            is_same, whole = before is not None and before[0] is base, base.pending + pending
            laid = like = before[1] if before is not None and is_same else base
            if like.pending != whole:
                differing = {entry.vm for entry in {*like.pending} ^ {*whole}}
                laid = with_more_pending(base, pending, like=like, differing=differing)
                if before is not None and not is_same:
                    share(laid, like=before[1])
            self._last = base, laid
            return laid


def with_intents(snapshot: Snapshot, intents: Iterable[Intent]) -> Snapshot:
    """Return the snapshot with the intents as `pending`, but for those that the engine shows by now."""
    added = _pending_of(snapshot, intents)
    return with_more_pending(snapshot, added, like=snapshot) if added else snapshot


def _pending_of(snapshot: Snapshot, intents: Iterable[Intent]) -> tuple[Pending, ...]:
    """Of VMs that are still to come: that have neither arrived, nor stayed where they were for too long."""
    shown = {(entry.vm, entry.host) for entry in snapshot.pending}
    return tuple(
        Pending(vm=vm.id, host=intent.target, memory_mb=intent.memory_mb or vm.memory_mb)
        for intent in intents
        if (vm := snapshot.vm_by_id.get(intent.vm)) is not None
        and intent.target in snapshot.host_by_id
        and (vm.id, intent.target) not in shown
        and (vm.status == "migrating" or (intent.fresh and vm.host != intent.target))
    )


class OpenIntents:
    """Open intents of an engine, which stand in `pending`."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        nothing: tuple[Intent, ...] = ()
        self._reader = StoreReader(
            settings, engine, nothing, _INTENTS, lambda store, _: store.blocking_intents()
        )
        self._complaint = Complaint(_log, "open migrations are unknown", "open migrations are known again")
        self._overlay = Overlay()
        self.close = self._reader.close

    def over(self, base: Snapshot) -> Snapshot:
        """Return the snapshot with the intents that are open now; none if the store is known to be away."""
        self._reader.ask_store()
        self._complaint.say(self._reader.error)
        return self._overlay.over(base, () if self._reader.error else _pending_of(base, self._reader.found))


def as_recorded(snapshot: Snapshot, records: KeyRecords | None) -> Snapshot:
    """Return the snapshot with the keys and rules as they are recorded; without records, as it is.

    Keys of objects that are gone are among them: rules pass over these, and while the keys stay the same, so
    do the lists of them.
    """
    if records is None:
        return snapshot
    parts = asdict(records)
    del parts["revision"]
    return replace(snapshot, **parts)


def with_keys(snapshot: Snapshot, records: KeyRecords) -> Snapshot:
    """Return the snapshot with the keys that are recorded, but for those of objects that are gone.

    A state file may not name these.
    """
    hosts, vms = snapshot.host_by_id, snapshot.vm_by_id
    known: Mapping[str, Collection[str]] = {CLUSTER: snapshot.cluster_by_id, SERVER: vms, NODE: hosts}
    keys = records.placement_keys
    return replace(
        as_recorded(snapshot, records),
        placement_keys=tuple(key for key in keys if key.resource in known.get(key.level, (key.resource,))),
        frozen_keys=tuple(frozen for frozen in records.frozen_keys if frozen.vm in vms),
        sticky_copies=tuple(copy for copy in records.sticky_copies if copy.vm in vms),
        draining_hosts=tuple(host for host in records.draining_hosts if host in hosts),
    )


def demands_of(records: KeyRecords | None) -> Demands:
    """What keys and rules need of the engine; tags of VMs where a placement rule names some."""
    if records is None:
        return NO_DEMANDS
    rules, levels = records.placement_rules, {key.level for key in records.placement_keys}
    if any(rule.names_vm_tags for rule in rules):
        levels.add(VM_TAGS)
    tags = frozenset({HOST_TAGS}) if any(rule.names_host_tags for rule in rules) else NO_STATISTICS
    return Demands(referred(levels), searches_of(rules), tags)


@dataclass(frozen=True)
class WatchedKeys:
    """What was found at one look; None before there is a store."""

    records: KeyRecords | None = None
    #: When the store was last asked, whether or not it answered.
    asked_at: float = _NEVER
    #: When these were the keys of the store.
    read_at: float = _NEVER

    @property
    def is_unread(self) -> bool:
        """Whether the store has never answered."""
        return self.read_at == _NEVER

    def over(self, base: Snapshot) -> Snapshot:
        """The snapshot with these keys and rules."""
        found = as_recorded(base, self.records)
        return replace(found, unread=(*found.unread, STORED)) if self.is_unread else found


class KeyWatch:
    """Looks at the placement keys of an engine in a store; looks follow one another."""

    def __init__(self, settings: StoreSettings, engine: str, *waited_seconds: float) -> None:
        """So long it waits for the first answer and for later ones, if longer than is configured.

        Who says so looks all the time, and waits no longer than is configured while the store is in trouble.
        """

        def ask(store: KeyStore, known: KeyRecords | None) -> KeyRecords | None:
            """The same object while it still holds."""
            return known if known is not None and store.revision() == known.revision else store.records()

        nothing: KeyRecords | None = None
        self._reader = StoreReader(settings, engine, nothing, _KEYS, ask)
        self._waited_seconds = waited_seconds
        self._complaint = Complaint(_log, "placement keys cannot be read", "placement keys are read again")
        self._last = WatchedKeys()
        self.close = self._reader.close

    def ask_keys(self, began: float) -> WatchedKeys:
        """Ask the store at this moment or later; what it said last stands in for a store that is away."""
        last = self._last
        is_in_trouble = last.read_at < last.asked_at
        waited = (0.0, 0.0) if self._waited_seconds and is_in_trouble else self._waited_seconds
        error = self._reader.error if self._reader.ask_store(*waited) else "the store does not answer"
        records = self._reader.found
        instead = "decisions are made without them" if records is None else "those read last count"
        self._complaint.say(f"{error}; {instead}" if error else "")
        if last.asked_at == _NEVER and not error and records is None:
            _log.info("there is no store yet, and so there are no placement keys and rules")
        # That there was no store before says nothing about the keys of one that does not answer.
        before = _NEVER if records is None else last.read_at
        self._last = WatchedKeys(records, began, before if error else began)
        return self._last
