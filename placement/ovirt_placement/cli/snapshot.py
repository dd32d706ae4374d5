"""`ovirt-placement snapshot`: prints a live engine's cluster state file."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from ovirt_placement.answers.keys.change import read_records
from ovirt_placement.cli.arguments import add_command, add_config
from ovirt_placement.cli.changing import connected, opened
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from ovirt_placement.store.keys import KeyStore
from ovirt_service.errors import UserError
from ovirt_service.text import escaped

_log = logging.getLogger(__name__)

DESCRIPTION = """\
Print the engine's state, with the placement keys of the store, as a cluster state file
(docs/state-file.md): for --state of other commands, the simulator, or a bug report.
"""

EXAMPLES = "  ovirt-placement snapshot --statistics --devices > cluster.json\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "snapshot", summary, DESCRIPTION, run, EXAMPLES)
    add_config(parser)
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="check this state file and print it again",
    )
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="also the load of hosts and VMs: one request for each",
    )
    parser.add_argument(
        "--devices",
        action="store_true",
        help="also tags, disks, network interfaces and owners: several requests for each VM",
    )


def run(args: argparse.Namespace) -> int:
    snapshot = state_file.load(args.state) if args.state else _from_engine(args)
    sys.stdout.buffer.write(escaped(state_file.dumps(snapshot).decode()).encode())
    sys.stdout.buffer.flush()
    return 0


def _from_engine(args: argparse.Namespace) -> Snapshot:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.topology import read_snapshot

    with connected(args) as connection:
        snapshot = read_snapshot(connection, statistics=args.statistics, devices=args.devices)
    return _with_stored_keys(snapshot, args)


def _with_stored_keys(snapshot: Snapshot, args: argparse.Namespace) -> Snapshot:
    """Add the keys; without them the state may still be of use."""
    try:
        with opened(KeyStore, args, create=False) as store:
            records, _ = read_records(store)
    except UserError as error:
        _log.warning("placement keys are left out: %s", error)
        return snapshot
    return with_keys(snapshot, records)
