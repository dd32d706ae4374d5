"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.planning import report
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.service import process
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.intents import Store, StoreAway
from ovirt_service.errors import EXIT_STATUS, UserError

COMMAND = "ovirt-enforcer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        if options.command == "plan":
            return _plan(options.config, options.state, options.json)
        process.run(configuration.load(options.config), _say)
        return 0
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
    store = Store(
        config.store.url,
        engine=config.engine.name,
        patience_seconds=process.STORE_PATIENCE_SECONDS,
        create=False,
    )
    try:
        history = store.history(within_seconds=Gates.reach_seconds(settings))
    except StoreAway:
        return {}
    finally:
        store.close()
    return Gates(settings, history, ()).held(snapshot)


def _say(text: str) -> None:
    print(f"{COMMAND}: {text}", flush=True)
