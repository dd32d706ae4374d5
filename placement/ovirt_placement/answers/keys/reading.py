"""What placement keys can be set on, fresh enough for a person who sets some."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Snapshot
from ovirt_placement.model.key_levels import CLUSTER, NODE, SETTABLE
from ovirt_placement.model.key_resources import find_resource
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.keys import KeyRecords, KeyStore, SetKey
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.reading.detail import Detail

#: What keys on these levels are set on hangs on no VM.
_WITHOUT_VMS = frozenset({CLUSTER, NODE, "vdc", "vdc_offer"})


def read_records(store: KeyStore) -> tuple[KeyRecords, tuple[SetKey, ...]]:
    """What a store knows; one that nobody has written to holds nothing."""
    try:
        return store.records(), store.all_keys()
    except StoreUnmade:
        return KeyRecords(0), ()


def read_named(config: Config, patience_seconds: float, level: str, *words: str) -> Snapshot:
    """All that keys on this level can be set on.

    What the inventory publishes will do if it has the objects that are named, and all that hangs on them.
    """
    if level in SETTABLE and level not in _WITHOUT_VMS and not referred((level,)):
        known = inventory.known(config=config, deadline=patience_seconds, measured=inventory.Measured.NOTHING)
        with suppress(UserError):
            for word in words:
                find_resource(level, word, known.snapshot)
            return known.snapshot
    return read_engine(config, (level,))


def read_engine(config: Config, levels: Iterable[str] = SETTABLE) -> Snapshot:
    """All that keys on these levels can be set on, read from the engine at this moment."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect
    from ovirt_placement.engine.reading.topology import read_infrastructure, read_snapshot

    levels = tuple(levels)
    details = referred(levels)
    with connect(config.engine) as connection:
        if _WITHOUT_VMS.issuperset(levels):
            return read_infrastructure(connection)
        snapshot = read_snapshot(connection)
        return with_details(connection, snapshot, details) if details else snapshot


def with_details(connection: EngineConnection, snapshot: Snapshot, details: Detail) -> Snapshot:
    from ovirt_placement.engine.reading.vm_details import detailed

    return consistent(detailed(connection, snapshot, details))


def read_with(config: Config, snapshot: Snapshot, level: str) -> Snapshot:
    """The state that is known, if nothing that keys on this level refer to is missing; else as read now."""
    return read_engine(config, (level,)) if referred((level,)) else snapshot
