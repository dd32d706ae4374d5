"""The running enforcer: its parts put together, its rest between two cycles, and what systemd hears of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from ovirt_enforcer.keeping.keeper import Keeper
from ovirt_enforcer.keeping.memberships import MembershipKeeper
from ovirt_enforcer.migrating.executor import Executor
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.service.metrics import Metrics
from ovirt_enforcer.service.reading import Reading
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.reading.events import find_start_events
from ovirt_placement.engine.writing.events import add_event
from ovirt_placement.store.intents import Store
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.memberships import MembershipStore
from ovirt_service import metrics as metrics_page
from ovirt_service.progress import Progress
from ovirt_service.stopping import Stop
from ovirt_service.systemd import Notifier

#: The store is not in anybody's way here: wait for it as long as a person would.
STORE_PATIENCE_SECONDS = 5.0
#: How soon the keeper sees what is published, and a signal is heard.
_LOOK_SECONDS = 1.0
#: One piece of work may take so many slow requests, and so much time for itself; then it is believed to hang.
_MOST_SLOW_REQUESTS = 10
_LONGEST_WORK_SECONDS = 60.0

_log = logging.getLogger(__name__)


def run(config: Config, ready: Callable[[str], None]) -> None:
    """Enforce until SIGTERM or SIGINT; `ready` is told once what is watched, and how."""
    settings = config.section("enforcer", EnforcerSettings)
    stop, notifier, metrics = Stop(), Notifier(), Metrics()
    progress = Progress(_LONGEST_WORK_SECONDS + _MOST_SLOW_REQUESTS * config.engine.timeout_seconds)
    metrics_page.serve(metrics.registry, settings.metrics, "[enforcer] metrics")
    store, keys, memberships = _stores(config)
    with connect(config.engine) as connection:
        _greet(connection)
        reading = Reading(config)
        starts = partial(find_start_events, connection)
        keeper = Keeper(keys, time.monotonic, settings.interval_seconds, starts, reading.suffices)
        members = MembershipKeeper(
            memberships, partial(add_event, connection), time.monotonic, settings.interval_seconds
        )
        executor = Executor(connection, store, settings, time.monotonic, metrics.ended)
        daemon = Daemon(
            settings,
            reading.whole,
            store,
            executor,
            time.monotonic,
            lambda: stop.requested,
            (members, keeper),
            metrics,
            progress.mark,
        )
        ready(f"watching {connection.url} ({'enforcing' if settings.mode is Mode.ENFORCE else 'dry run'})")
        notifier.ready()
        notifier.keep_alive_beside(lambda: progress.hangs)
        daemon.run(partial(_rest, config, reading, keeper, stop, progress))
        notifier.stopping()
    for part in (store, keys, memberships):
        part.close()


def _stores(config: Config) -> tuple[Store, KeyStore, MembershipStore]:
    """The parts of the store that the daemon writes to."""
    url, engine, patience = config.store.url, config.engine.name, STORE_PATIENCE_SECONDS
    return (
        Store(url, engine=engine, patience_seconds=patience),
        KeyStore(url, engine=engine, patience_seconds=patience),
        MembershipStore(url, engine=engine, patience_seconds=patience),
    )


def _greet(connection: EngineConnection) -> None:
    """Find out what a person must set right; an engine that is away is waited for."""
    try:
        connection.get("/clusters", max=1)
    except EngineAway as away:
        _log.warning("%s", away)


def _rest(
    config: Config, reading: Reading, keeper: Keeper, stop: Stop, progress: Progress, seconds: float
) -> bool:
    """Until something is due, let the keeper see what the inventory publishes; whether it is time to stop.

    Without an inventory service the keeper sees what the enforcer reads for itself, and reads the engine only
    to make up for what failed.
    """
    until = time.monotonic() + seconds
    while not stop.requested and (left := until - time.monotonic()) > 0:
        progress.mark()
        next_look = time.monotonic() + min(left, _LOOK_SECONDS)
        changed = inventory.wait_for_change(min(left, _LOOK_SECONDS), config=config)
        if changed or keeper.needs_retry:
            keeper.look_at_latest(reading.latest)
        stop.sleep(next_look - time.monotonic())
    return stop.sleep(0)
