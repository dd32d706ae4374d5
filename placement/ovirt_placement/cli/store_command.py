"""`ovirt-placement store`: makes a lost store again, writes a backup of one, and brings it back."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, closing
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers.orders import StoreChangeDocument, StoreContent
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.changing import login_name, show_change
from ovirt_placement.model.names import counted
from ovirt_placement.store import backup
from ovirt_placement.store.sql.access import EngineRows
from ovirt_placement.store.sql.database import Database, StoreAway, StoreLater, StoreLost, StoreUnmade
from ovirt_placement.store.sql.opening import PERSON_SECONDS
from ovirt_placement.store.user_actions import Act, UserActionKind, record
from ovirt_service import identity

#: It is recorded who made or restored a store.
_WITH_A_RECORD = StoreContent(1)

DESCRIPTION = """\
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


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser(
        "store",
        help=summary,
        description=DESCRIPTION,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    making = add_command(actions, "init", "make a lost store again, empty", INIT, _init, INIT_EXAMPLES)
    add_config(making)
    add_change(making)
    writing = add_command(
        actions, "backup", "write all that the store holds into a file", BACKUP, _backup, BACKUP_EXAMPLES
    )
    reading = add_command(
        actions, "restore", "bring back what a backup holds", RESTORE, _restore, RESTORE_EXAMPLES
    )
    reading.add_argument("--replace", action="store_true", help="replace what the store holds now")
    for action in (writing, reading):
        action.add_argument("file", type=Path, metavar="FILE", help="the backup")
        add_config(action)
    add_change(reading)
    writing.set_defaults(remains_root=True)  # the backup is written where its caller may write


def _init(args: argparse.Namespace) -> int:
    before = _content(args)
    with _opened(args, create=not args.dry_run) as database:
        if before is None and not args.dry_run:
            engine, act = _recorded_by(args, UserActionKind.STORE_INIT)
            database.begin_again(lambda connection: record(EngineRows(connection, engine), act))
        after = before or _WITH_A_RECORD
        state = "is there" if before else "would be made, empty" if args.dry_run else "made, empty"
        changed = before is None
        _report(args, database, (before, after), f"store {database.name}: {state}", changed=changed)
    return 0


def _backup(args: argparse.Namespace) -> int:
    found = config.load(args.config)
    if identity.is_below(args.file.parent, found.folders):
        identity.become_owner(found.folders, found.files)
    with _opened(args, create=False) as database:
        print(f"{args.file}: {counted(backup.write(database, args.file, found.folders), 'row')}")
    return 0


def _restore(args: argparse.Namespace) -> int:
    found = backup.read(args.file)
    before = _content(args)
    after = StoreContent(backup.count_of(found) + _WITH_A_RECORD.rows)
    with _opened(args, create=False) as database:
        if not args.dry_run:
            by = _recorded_by(args, UserActionKind.STORE_RESTORE, str(args.file))
            said = f"{counted(backup.restore(database, found, by, replace=args.replace), 'row')} restored"
        else:
            if before is None:
                backup.check_rows(found)
            else:
                backup.check(database, found, replace=args.replace)
            said = f"{counted(backup.count_of(found), 'row')} would be restored"
        _report(args, database, (before, after), f"store {database.name}: {said}", changed=True)
    return 0


def _content(args: argparse.Namespace) -> StoreContent | None:
    """What the store holds; None where there is none. One of an earlier release is upgraded first."""
    with _opened(args, create=False) as database:
        try:
            database.check_whole()
            return StoreContent(backup.count(database))
        except (StoreLost, StoreUnmade):
            return None
        except StoreLater:
            if "replace" in args and args.replace:
                return None  # it is put aside
            raise
        except StoreAway:
            if args.dry_run:
                raise
    with _opened(args) as database:
        return StoreContent(backup.count(database))


def _report(
    args: argparse.Namespace,
    database: Database,
    content: tuple[StoreContent | None, StoreContent],
    said: str,
    *,
    changed: bool,
) -> None:
    before, after = content
    answer = StoreChangeDocument(
        changed=changed, dry_run=args.dry_run, store=database.name, before=before, after=after
    )
    show_change(args, answer, [said])


def _recorded_by(args: argparse.Namespace, kind: UserActionKind, subject: str = "") -> tuple[str, Act]:
    """Who does this, for the records of the engine that is configured; a store may hold several."""
    return config.load(args.config).engine.name, Act(kind=kind, login=login_name(), subject=subject)


def _opened(args: argparse.Namespace, *, create: bool = True) -> AbstractContextManager[Database]:
    url = config.load(args.config).store.url
    return closing(Database(url, patience_seconds=PERSON_SECONDS, create=create))
