"""A store of placement keys, a service that publishes them, and what is published."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.publication import Publication
from ovirt_placement.model import Snapshot
from ovirt_placement.store.keys import KeyStore
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured

DEADLINE_SECONDS = 30


def configured_over(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    """Configure a service that asks the engine but rarely, over a store of either kind."""
    file = configured(tmp_path, engine)
    file.write_text(file.read_text().replace(f"sqlite:///{tmp_path}/store.db", url))
    return file


@contextmanager
def opened(url: str) -> Iterator[KeyStore]:
    store = KeyStore(url, engine="default", patience_seconds=30)
    try:
        yield store
    finally:
        store.close()


def names(snapshot: Snapshot) -> list[str]:
    return [key.name for key in snapshot.placement_keys]


def published(config: Config) -> Snapshot:
    """What is published now, from either source."""
    return publication(config).snapshot


def publication(config: Config) -> Publication:
    """The same with its moments."""
    found = inventory.known(config=config, max_age=math.inf).publication
    assert found is not None
    return found


def soon(config: Config, holds: Callable[[Snapshot], bool]) -> Snapshot:
    """Wait until what is published is so, without asking for it."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not holds(found := published(config)):
        assert time.monotonic() < until, found
        inventory.wait_for_change(1.0, config=config)
        time.sleep(0.01)
    return found


def reported(log: Path, text: str) -> int:
    """How often the service has said so, once it has said it at all."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not (count := log.read_text().count(text)):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.01)
    return count
