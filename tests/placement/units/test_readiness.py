"""A snapshot is decoded and looked up as it is published, before anyone asks about it."""

from __future__ import annotations

import threading
import time
from itertools import count, islice
from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.membership import groups_of
from ovirt_placement.units.readiness import Readiness
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import ended, renamed_hosts, running

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

_numbers = count()


def next_ready(engine: EngineServer, config: Config, like: Snapshot) -> Snapshot:
    """Let the engine change until a snapshot of it is found ready that nobody here looked anything up in.

    What this thread decodes first is left alone: it is about to be decided on. So one change may not do.
    """
    for number in islice(_numbers, 60):
        host = f"renamed-{number}"
        engine.answer = lambda path, host=host: (200, renamed_hosts(host)) if path == "/hosts" else None
        newer = inventory.snapshot(config=config, max_age=0, deadline=30)
        assert host in {known.name for known in newer.hosts}
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            if set(like.__dict__) <= set(newer.__dict__):
                return newer
            time.sleep(0.01)
    raise AssertionError("nothing was made ready")


def test_new_snapshots_are_made_ready(tmp_path: Path, engine: EngineServer, config: Config) -> None:
    with running(tmp_path / "placement.toml") as service:
        first = inventory.snapshot(config=config, max_age=60)
        Readiness(config).used(first)
        groups_of(first)
        newer = next_ready(engine, config, like=first)
        assert inventory.snapshot(config=config, max_age=60) is newer
        assert next_ready(engine, config, like=first) is not newer
        ended(service)


def test_it_goes_on_when_the_inventory_has_been_away(
    tmp_path: Path, engine: EngineServer, config: Config
) -> None:
    with running(tmp_path / "placement.toml") as service:
        first = inventory.snapshot(config=config, max_age=60)
        groups_of(first)
        Readiness(config).used(first)
        ended(service)
    with running(tmp_path / "placement.toml") as service:
        next_ready(engine, config, like=first)
        ended(service)


def following() -> set[threading.Thread]:
    """Threads of this kind: servers of other tests have some of their own, which come and go."""
    return {thread for thread in threading.enumerate() if thread.name == "readiness"}


def test_one_thread_is_enough_however_many_decisions_are_made(config: Config) -> None:
    readiness = Readiness(config)
    nothing = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())
    before = following()
    for _ in range(10):
        readiness.used(nothing)
    assert len(following() - before) == 1
