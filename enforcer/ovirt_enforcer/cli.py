"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

from ovirt_enforcer.gates.gates import Gates
from ovirt_enforcer.keeping.keeper import Keeper
from ovirt_enforcer.migrating.executor import Executor
from ovirt_enforcer.planning import report
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.service.reading import Reading
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineAway, connect
from ovirt_placement.engine.reading.events import find_start_events
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.intents import Store, StoreAway
from ovirt_placement.store.keys import KeyStore
from ovirt_service.errors import EXIT_STATUS, UserError
from ovirt_service.stopping import Stop

COMMAND = "ovirt-enforcer"
#: The store is not in anybody's way here: wait for it as long as a person would.
_STORE_PATIENCE_SECONDS = 5.0
#: How soon the keeper sees what is published, and a signal is heard.
_GLANCE_SECONDS = 1.0

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        if options.command == "plan":
            return _plan(options.config, options.state, options.json)
        return _run(configuration.load(options.config))
    except UserError as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        return EXIT_STATUS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="Finds VMs that break hard affinity groups, and migrates as few as will mend them.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('ovirt-placement')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="find broken rules and repair them, until SIGTERM")
    plan = commands.add_parser("plan", help="say which migrations would repair what is broken, and why")
    for command in (run, plan):
        command.add_argument("--config", type=Path, metavar="FILE", help="the configuration to read")
    plan.add_argument("--state", type=Path, metavar="FILE", help="a cluster state file in place of an engine")
    plan.add_argument("--json", action="store_true", help="print data for programs")
    return parser


def _plan(config_path: Path | None, state: Path | None, json: bool) -> int:
    if state is not None:
        snapshot, held = state_file.load(state), {}
    else:
        config = configuration.load(config_path)
        snapshot = inventory.snapshot(config=config, max_age=0.0)
        held = _held(config, snapshot)
    plans = [make_plan(snapshot, cluster, held) for cluster in sorted(snapshot.cluster_by_id)]
    if json:
        document = [report.data(plan, snapshot) for plan in plans]
        print(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        print("\n".join(report.text(plan, snapshot) for plan in plans))
    return 0


def _held(config: Config, snapshot: Snapshot) -> dict[str, str]:
    """VMs that a running enforcer would leave alone; none where there is no store yet."""
    settings = config.section("enforcer", EnforcerSettings)
    store = Store(config.store.url, patience_seconds=_STORE_PATIENCE_SECONDS, create=False)
    try:
        history = store.history(within_seconds=Gates.reach_seconds(settings))
    except StoreAway:
        return {}
    finally:
        store.close()
    return Gates(settings, history, ()).held(snapshot)


def _run(config: Config) -> int:
    settings = config.section("enforcer", EnforcerSettings)
    stop = Stop()
    store = Store(config.store.url, patience_seconds=_STORE_PATIENCE_SECONDS)
    keys = KeyStore(config.store.url, patience_seconds=_STORE_PATIENCE_SECONDS)
    with connect(config.engine) as connection:
        try:
            connection.get("/clusters", max=1)
        except EngineAway as away:
            _log.warning("%s", away)
        executor = Executor(connection, store, settings, time.monotonic)
        reading = Reading(config)
        starts = partial(find_start_events, connection)
        keeper = Keeper(keys, time.monotonic, settings.interval_seconds, starts, reading.suffices)
        daemon = Daemon(
            settings, reading.whole, store, executor, time.monotonic, lambda: stop.requested, keeper
        )
        manner = "enforcing" if settings.mode is Mode.ENFORCE else "dry run"
        print(f"{COMMAND}: watching {connection.url} ({manner})", flush=True)
        daemon.run(partial(_rest, config, reading, keeper, stop))
    store.close()
    keys.close()
    return 0


def _rest(config: Config, reading: Reading, keeper: Keeper, stop: Stop, seconds: float) -> bool:
    """Until something is due, let the keeper see what the inventory publishes; whether it is time to stop.

    Without an inventory service the keeper sees what the enforcer reads for itself, and reads the engine only
    to make up for what failed.
    """
    until = time.monotonic() + seconds
    while not stop.requested and (left := until - time.monotonic()) > 0:
        glance = time.monotonic() + min(left, _GLANCE_SECONDS)
        changed = inventory.wait_for_change(min(left, _GLANCE_SECONDS), config=config)
        if changed or keeper.owes:
            keeper.glance(reading.latest)
        stop.sleep(glance - time.monotonic())
    return stop.sleep(0)
