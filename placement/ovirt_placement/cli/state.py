"""`ovirt-placement snapshot`, `inventory` and `store`: the engine's state, and the store."""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers.orders import StoreChangeDocument, StoreContent
from ovirt_placement.cli.changes import connected, login_name, show_change, stored
from ovirt_placement.cli.questions import add_change, add_command, add_config
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import state_file
from ovirt_placement.model.names import counted
from ovirt_placement.store import backup
from ovirt_placement.store.keys import KeyRecords, KeyStore
from ovirt_placement.store.sql.access import PERSON_SECONDS, EngineRows
from ovirt_placement.store.sql.database import Database, StoreLater, StoreLost, StoreUnmade
from ovirt_placement.store.user_actions import Act, UserActionKind, record
from ovirt_service import identity
from ovirt_service.errors import UserError
from ovirt_service.text import escaped

# -- `ovirt-placement snapshot`: prints a live engine's cluster state file.
_log = logging.getLogger(__name__)

_SNAPSHOT = """\
Print the engine's state, with the placement keys of the store, as a cluster state file
(docs/state-file.md): for --state of other commands, the simulator, or a bug report.
"""

_SNAPSHOT_EXAMPLES = "  ovirt-placement snapshot --statistics --devices > cluster.json\n"


def add_snapshot(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "snapshot", summary, _SNAPSHOT, _print_snapshot, _SNAPSHOT_EXAMPLES)
    add_config(parser)
    add = parser.add_argument
    add("--state", type=Path, metavar="FILE", help="check this state file and print it again")
    loads = "also the load of hosts and VMs: one request for each"
    add("--statistics", action="store_true", help=loads)
    devices = "also tags, disks, network interfaces and owners: several requests for each VM"
    add("--devices", action="store_true", help=devices)


def _print_snapshot(args: argparse.Namespace) -> int:
    if args.state:
        snapshot = state_file.load(args.state)
    else:
        # The SDK takes long to load: not for `--help`.
        from ovirt_placement.engine.topology import read_snapshot

        with connected(args) as connection:
            snapshot = read_snapshot(connection, statistics=args.statistics, devices=args.devices)
        try:
            records = stored(KeyStore, args, KeyStore.records, KeyRecords(0))
            snapshot = with_keys(snapshot, records)
        except UserError as error:  # without the keys the state may still be of use
            _log.warning("placement keys are left out: %s", error)
    sys.stdout.buffer.write(escaped(state_file.dumps(snapshot).decode()).encode())
    sys.stdout.buffer.flush()
    return 0


# -- `ovirt-placement inventory run`: the service that reads the engine for all of this machine.
_INVENTORY = """\
Follow the engine's events, and publish its state for the plugins, the enforcer and the commands of this
machine, until SIGTERM. See docs/inventory.md.
"""

_INVENTORY_EXAMPLES = "  ovirt-placement inventory run --config /etc/ovirt-placement/east.toml\n"


def add_inventory(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("inventory", help=summary)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    text = "run the service in the foreground"
    add_config(add_command(actions, "run", text, _INVENTORY, _run_inventory, _INVENTORY_EXAMPLES))


def _run_inventory(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.inventory.service import service
    from ovirt_placement.units.decisions import Decider

    configuration = config.load(args.config)
    directory = configuration.inventory.directory
    service.run(
        configuration, lambda: print(f"ovirt-placement: publishing to {directory}", flush=True), Decider
    )
    return 0


# -- `ovirt-placement store`: makes a lost store again, writes a backup of one, and brings it back.
#: It is recorded who made or restored a store.
_WITH_A_RECORD = StoreContent(1)

_STORE = """\
The store holds which migrations are under way, the placement keys, and what else is remembered over restarts.
It is made at the first start. If it is gone or empty later, nothing begins again by itself: all parts say so
and stand still until it is restored, or made again by `init`.
"""

BACKUP = """\
Write the store, of all engines, into a new file, while the services run. The release that wrote it can
restore it.
"""

RESTORE = "Restore a backup, all of it or nothing. Stop the services first.\n"

INIT = "Make a lost store again, empty: open migrations, cooldowns and placement keys are forgotten.\n"

INIT_EXAMPLES = "  ovirt-placement store init\n"

BACKUP_EXAMPLES = "  ovirt-placement store backup store-2026-01-31.backup\n"

RESTORE_EXAMPLES = "  ovirt-placement store restore store-2026-01-31.backup\n"


def add_store(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("store", help=summary, description=_STORE)
    add = partial(add_command, parser.add_subparsers(metavar="ACTION", required=True))
    making = add("init", "make a lost store again, empty", INIT, _init, INIT_EXAMPLES)
    writing = add("backup", "write all that the store holds into a file", BACKUP, _backup, BACKUP_EXAMPLES)
    reading = add("restore", "bring back what a backup holds", RESTORE, _restore, RESTORE_EXAMPLES)
    reading.add_argument("--replace", action="store_true", help="replace what the store holds now")
    for action in (writing, reading):
        action.add_argument("file", type=Path, metavar="FILE", help="the backup")
    for action in (making, writing, reading):
        add_config(action)
    add_change(making)
    add_change(reading)
    writing.set_defaults(remains_root=True)  # the backup is written where its caller may write


def _init(args: argparse.Namespace) -> int:
    with _database(args, create=not args.dry_run) as database, database.changed_alone():
        before = _content(args)
        if before is None and not args.dry_run:
            engine, act = _recorded_by(args, UserActionKind.STORE_INIT)
            database.begin_again(lambda connection: record(EngineRows(connection, engine), act))
        after = before or _WITH_A_RECORD
        state = "is there" if before else "would be made, empty" if args.dry_run else "made, empty"
    answer = StoreChangeDocument(
        changed=before is None, dry_run=args.dry_run, store=database.name, before=before, after=after
    )
    show_change(args, answer, [f"store {database.name}: {state}"])
    return 0


def _backup(args: argparse.Namespace) -> int:
    found = config.load(args.config)
    if identity.is_below(args.file.parent, found.folders):
        identity.become_owner(found.folders, found.files)
    with _database(args, create=False) as database:
        print(f"{args.file}: {counted(backup.write(database, args.file, found.folders), 'row')}")
    return 0


def _restore(args: argparse.Namespace) -> int:
    found = backup.read(args.file)
    before = _content(args)
    rows = backup.count_of(found)
    after = StoreContent(rows + _WITH_A_RECORD.rows)
    with _database(args, create=False) as database:
        if not args.dry_run:
            by = _recorded_by(args, UserActionKind.STORE_RESTORE, str(args.file))
            backup.restore(database, found, by, replace=args.replace)
        elif before is None:
            backup.check_rows(found)
        else:
            backup.check(database, found, replace=args.replace)
        said = f"{counted(rows, 'row')} {'would be restored' if args.dry_run else 'restored'}"
    answer = StoreChangeDocument(
        changed=True, dry_run=args.dry_run, store=database.name, before=before, after=after
    )
    show_change(args, answer, [f"store {database.name}: {said}"])
    return 0


def _content(args: argparse.Namespace) -> StoreContent | None:
    """What the store holds; None where there is none."""
    with _database(args, create=False) as database:
        try:
            database.check_whole()
            return StoreContent(backup.count(database))
        except (StoreLost, StoreUnmade):
            return None
        except StoreLater:
            if "replace" in args and args.replace:
                return None  # it is put aside
            raise


def _recorded_by(args: argparse.Namespace, kind: UserActionKind, subject: str = "") -> tuple[str, Act]:
    """Who does this, for the records of the engine that is configured; a store may hold several."""
    return config.load(args.config).engine.name, Act(kind=kind, login=login_name(), subject=subject)


def _database(args: argparse.Namespace, *, create: bool = True) -> AbstractContextManager[Database]:
    url = config.load(args.config).store.url
    return closing(Database(url, patience_seconds=PERSON_SECONDS, create=create))
