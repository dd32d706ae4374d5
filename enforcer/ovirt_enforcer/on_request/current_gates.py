"""The gates as a running enforcer would ask them now, for those who say what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import Remembered
from ovirt_enforcer.gates.memory import Memory
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.tagged import tagged_ids
from ovirt_placement.store.database import StoreAway
from ovirt_placement.store.opening import PERSON_SECONDS


@contextmanager
def current_gates(config: Config, connection: EngineConnection) -> Iterator[Gates]:
    """Give the gates; where there is no store yet, or none that answers, by the configuration alone.

    Raises what asking the engine for what is tagged raises. Nothing is written.
    """
    settings = config.section("enforcer", EnforcerSettings)
    tag = settings.exclude_tag
    tagged = tagged_ids(connection, tag) if tag else frozenset[str]()
    memory = Memory(config, patience_seconds=PERSON_SECONDS, create=False, tagged=lambda: tagged)
    try:
        yield _gates(memory, settings, Remembered(tagged=tagged))
    finally:
        memory.close()


def _gates(memory: Memory, settings: EnforcerSettings, otherwise: Remembered) -> Gates:
    try:
        return memory.gates()
    except StoreAway:
        return Gates(settings, otherwise, (), datetime.now(UTC))
