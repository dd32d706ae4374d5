"""`ovirt-enforcer plan`: which migrations would repair what is broken, and why."""

from __future__ import annotations

import argparse

import msgspec

from ovirt_enforcer.cli.arguments import add_config, add_json, add_state
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


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("plan", help="say which migrations would repair what is broken, and why")
    add_config(parser)
    add_state(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.state is not None:
        snapshot, held = state_file.load(args.state), {}
    else:
        config = configuration.load(args.config)
        snapshot = inventory.snapshot(config=config, max_age=0.0)
        held = _held(config, snapshot)
    plans = [make_plan(snapshot, cluster, held) for cluster in sorted(snapshot.cluster_by_id)]
    if args.json:
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
