"""What the store says of an engine: open intents and placement keys, laid over its state."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec.structs import replace

from ovirt_placement.config import StoreSettings
from ovirt_placement.inventory.on_demand import NO_SEARCHES, VM_TAGS, Wanted, searches_of
from ovirt_placement.lookups.index import with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.placement_keys import CLUSTER, NODE, SERVER
from ovirt_placement.model.snapshot import STORED, Part
from ovirt_service.errors import UserError
from ovirt_service.saying import Complaint
from ovirt_service.threads import BackgroundThread

if TYPE_CHECKING:
    from ovirt_placement.store.intents import Intent, Store
    from ovirt_placement.store.keys import KeyRecords, KeyStore

#: The first answer has nothing known to fall back on: a store that answers may take longer.
FIRST_PATIENCE_SECONDS = 1.0

Found = TypeVar("Found")

_log = logging.getLogger(__name__)


class Stored(Generic[Found]):
    """What a store said last, for all threads of a process."""

    def __init__(
        self, ask: Callable[[Found], Found], nothing: Found, close: Callable[[], object] = lambda: None
    ) -> None:
        """`ask` reads the store; it gets what it answered last, and raises `UserError` if it is away.

        `close` closes what it has opened.
        """
        self._ask = ask
        self._close = close
        self._closed = False
        self._lock = threading.Lock()
        self._reading: threading.Event | None = None
        self.found = nothing
        #: Why the last reading found nothing; empty if it did.
        self.error = ""
        #: Whether a reading has ended, in whatever way.
        self.answered = False

    @property
    def trouble(self) -> str:
        """Why nothing is known, or nothing newer; empty while the store answers."""
        return self.error if self.answered else "the store has not answered yet"

    def look(self, patience_seconds: float) -> bool:
        """Ask the store now, and wait for its answer so long; whether it came, be it an error.

        A reading that began earlier is waited for, too, and goes on when patience is over.
        """
        until = time.monotonic() + patience_seconds
        with self._lock:
            earlier = self._reading
        if earlier is not None and not earlier.wait(patience_seconds):
            return False
        with self._lock:
            reading = self._reading or self._begin()
        return reading.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Close the store; a reading that is under way closes it at its end."""
        with self._lock:
            self._closed = True
            idle = self._reading is None
        if idle:
            self._close()

    def _begin(self) -> threading.Event:
        reading = self._reading = threading.Event()
        BackgroundThread(target=self._read, args=(reading,), name="store").start()
        return reading

    def _read(self, reading: threading.Event) -> None:
        try:
            self.found, self.error = self._ask(self.found), ""
        except UserError as error:
            self.error = str(error)
        except Exception as error:
            text = f"reading the store failed: {error}"
            if text != self.error:
                _log.exception("reading the store failed")
            self.error = text
        with self._lock:
            self.answered, self._reading = True, None
            closed = self._closed
        if closed:
            self._close()
        reading.set()


def loaded(url: str) -> bool:
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
    for module in ("ovirt_placement.store.intents", "ovirt_placement.store.keys"):
        importlib.import_module(module)
    return True


def with_intents(snapshot: Snapshot, intents: Iterable[Intent]) -> Snapshot:
    """Return the snapshot with the intents as `pending`, but for those that the engine shows by now."""
    shown = {(entry.vm, entry.host) for entry in snapshot.pending}
    added = tuple(
        Pending(vm=vm.id, host=intent.target, memory_mb=intent.memory_mb or vm.memory_mb)
        for intent in intents
        if (vm := snapshot.vm_by_id.get(intent.vm)) is not None
        and intent.target in snapshot.host_by_id
        and (vm.id, intent.target) not in shown
        and _expected(intent, vm)
    )
    return with_more_pending(snapshot, added, like=snapshot) if added else snapshot


def _expected(intent: Intent, vm: Vm) -> bool:
    """Whether the VM is still to come: it has neither arrived, nor stayed where it was for too long."""
    if vm.status == "migrating":
        return True
    return intent.fresh and vm.host != intent.target


class IntentReader:
    """Reads the open intents of an engine in a store."""

    def __init__(self, url: str, engine: str, patience_seconds: float) -> None:
        self._url = url
        self._engine = engine
        self._patience_seconds = patience_seconds
        self._store: Store | None = None

    def close(self) -> None:
        """Close the store; another reading opens it again."""
        if self._store is not None:
            self._store.close()

    def __call__(self, known: tuple[Intent, ...]) -> tuple[Intent, ...]:
        """Return what is open now, whatever was known; nothing before there are tables.

        Raises `UserError` if the store is away.
        """
        from ovirt_placement.store.database import StoreUnmade
        from ovirt_placement.store.intents import Store

        if self._store is None:
            self._store = Store(
                self._url, engine=self._engine, patience_seconds=self._patience_seconds, create=False
            )
        try:
            return self._store.blocking_intents()
        except StoreUnmade:
            return ()


def as_recorded(snapshot: Snapshot, records: KeyRecords | None) -> Snapshot:
    """Return the snapshot with the keys and rules as they are recorded; without records, as it is.

    Keys of objects that are gone are among them: rules pass over these, and while the keys stay the same, so
    do the lists of them.
    """
    if records is None:
        return snapshot
    return replace(
        snapshot,
        placement_keys=records.keys,
        frozen_keys=records.frozen,
        sticky_copies=records.copies,
        placement_rules=records.rules,
        draining_hosts=records.draining,
    )


def with_keys(snapshot: Snapshot, records: KeyRecords) -> Snapshot:
    """Return the snapshot with the keys that are recorded, but for those of objects that are gone."""
    return without_lost_keys(as_recorded(snapshot, records))


def without_lost_keys(snapshot: Snapshot) -> Snapshot:
    """Leave out the keys of objects that are gone, which a state file may not name."""
    hosts, vms = snapshot.host_by_id, snapshot.vm_by_id
    known: Mapping[str, Collection[str]] = {CLUSTER: snapshot.cluster_by_id, SERVER: vms, NODE: hosts}
    return replace(
        snapshot,
        placement_keys=tuple(
            key
            for key in snapshot.placement_keys
            if key.level not in known or key.resource in known[key.level]
        ),
        frozen_keys=tuple(frozen for frozen in snapshot.frozen_keys if frozen.vm in vms),
        sticky_copies=tuple(copy for copy in snapshot.sticky_copies if copy.vm in vms),
        draining_hosts=tuple(host for host in snapshot.draining_hosts if host in hosts),
    )


def levels(records: KeyRecords | None) -> frozenset[str]:
    """Say on which levels there are keys; tags of VMs count as one where a placement rule names some."""
    if records is None:
        return frozenset()
    tagged = any(rule.names_vm_tags for rule in records.rules)
    return frozenset(key.level for key in records.keys).union([VM_TAGS] if tagged else ())


def names_host_tags(records: KeyRecords | None) -> bool:
    """Say whether a placement rule goes by the tags of hosts."""
    return records is not None and any(rule.names_host_tags for rule in records.rules)


def searches(records: KeyRecords | None) -> Wanted:
    """The searches that placement rules name."""
    return NO_SEARCHES if records is None else searches_of(records.rules)


class KeyReader:
    """Reads the placement keys of an engine in a store, all of them when there are others."""

    def __init__(self, url: str, engine: str, patience_seconds: float) -> None:
        self._url = url
        self._engine = engine
        self._patience_seconds = patience_seconds
        self._store: KeyStore | None = None

    def close(self) -> None:
        """Close the store; another reading opens it again."""
        if self._store is not None:
            self._store.close()

    def __call__(self, known: KeyRecords | None) -> KeyRecords | None:
        """Return the records, the known ones if they still hold; None if there is no store yet.

        Raises `UserError` if the store is away, also one that was there before.
        """
        if not loaded(self._url):
            return _unless_known(known, f"store {self._url}: is not there any more")
        from ovirt_placement.store.database import StoreUnmade
        from ovirt_placement.store.keys import KeyStore

        if self._store is None:
            self._store = KeyStore(
                self._url, engine=self._engine, patience_seconds=self._patience_seconds, create=False
            )
        try:
            same = known is not None and self._store.revision() == known.revision
            return known if same else self._store.records()
        except StoreUnmade as error:
            return _unless_known(known, str(error))


def _unless_known(known: KeyRecords | None, error: str) -> KeyRecords | None:
    """A store that nobody has made yet holds no keys; one that was there before is away."""
    if known is not None:
        raise UserError(error)
    return known


class IntentOverlay:
    """Open intents of an engine, which stand in `pending`."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: tuple[Intent, ...] = ()
        reader = IntentReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "open migrations are unknown", "open migrations are known again")
        self._lock = threading.Lock()
        #: With what it was made of; the same object comes again, so that what it has indexed is kept.
        self._made: tuple[Snapshot, list[tuple[object, ...]], Snapshot] | None = None

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def over(self, base: Snapshot) -> Snapshot:
        """Return the snapshot with the intents that are open now; none if the store is known to be away."""
        if not _look(self._stored, self._settings):
            return base
        self._complaint.say(self._stored.trouble)
        intents = () if self._stored.error else self._stored.found
        if not intents:
            return base
        laid: list[tuple[object, ...]] = [(intent.id, intent.state, intent.fresh) for intent in intents]
        with self._lock:
            last = self._made
            if last is None or last[0] is not base or last[1] != laid:
                last = self._made = (base, laid, with_intents(base, intents))
            return last[2]


class KeyOverlay:
    """Placement keys of an engine, where nobody publishes them."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: KeyRecords | None = None
        reader = KeyReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "placement keys are unknown", "placement keys are known again")
        self._lock = threading.Lock()
        self._made: tuple[Snapshot, KeyRecords | None, Snapshot] | None = None
        self._unread: tuple[Part, ...] = ()

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def look(self) -> KeyRecords | None:
        """Return the keys that the store holds now; None if there is no store, or none that ever answered."""
        asked = _look(self._stored, self._settings)
        if asked:
            self._complaint.say(self._stored.trouble)
        self._unread = (STORED,) if asked and self._stored.trouble and self._stored.found is None else ()
        return self._stored.found

    def over(self, base: Snapshot, records: KeyRecords | None) -> Snapshot:
        """Return the snapshot with the keys; the same object for the same two."""
        with self._lock:
            last = self._made
            if last is None or last[0] is not base or last[1] is not records:
                last = self._made = (base, records, as_recorded(base, records))
            if last[2].unread != self._unread:
                last = self._made = (base, records, replace(last[2], unread=self._unread))
            return last[2]


def _look(stored: Stored[Found], settings: StoreSettings) -> bool:
    """Ask the store, if there is one."""
    if not loaded(settings.url):
        return False
    usual = settings.patience_seconds
    stored.look(usual if stored.answered else max(usual, FIRST_PATIENCE_SECONDS))
    return True


#: Nothing is published before the store was asked: decisions without keys would be worse than none so long.
_FIRST_PATIENCE_SECONDS = 3.0
#: A refresh waits so long once, when a store begins to hang.
_PATIENCE_SECONDS = 1.0
_NEVER = float("-inf")


@dataclass(frozen=True)
class WatchedKeys:
    """What was found at one look; None before there is a store."""

    records: KeyRecords | None = None
    #: When the store was last asked, whether or not it answered.
    asked_at: float = _NEVER
    #: When these were the keys of the store.
    read_at: float = _NEVER


class KeyWatch:
    """Looks at the store; looks follow one another."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: KeyRecords | None = None
        reader = KeyReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "placement keys cannot be read", "placement keys are read again")
        self._error = ""
        self._last = WatchedKeys()

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def look(self, began: float) -> WatchedKeys:
        """Ask the store at this moment or later; what it said last stands in for a store that is away."""
        loaded(self._settings.url)
        answered = self._stored.look(self._patience_seconds)
        self._error = self._stored.error if answered else "the store does not answer"
        records, read_at = self._stored.found, self._last.read_at if self._error else began
        self._report(records)
        self._last = WatchedKeys(records, began, read_at)
        return self._last

    @property
    def _patience_seconds(self) -> float:
        """A store that may answer is given the time that it takes to read many keys; another not."""
        usual = self._settings.patience_seconds
        if self._error:
            return usual
        return max(usual, _FIRST_PATIENCE_SECONDS if self._last.asked_at == _NEVER else _PATIENCE_SECONDS)

    def _report(self, records: KeyRecords | None) -> None:
        instead = "decisions are made without them" if records is None else "those read last stay published"
        self._complaint.say(f"{self._error}; {instead}" if self._error else "")
        if self._last.asked_at == _NEVER and not self._error and records is None:
            _log.info("there is no store yet, and so there are no placement keys")
