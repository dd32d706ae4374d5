"""`ovirt-enforcer history`: what was decided lately, what came of it, and why."""

from __future__ import annotations

import argparse

import msgspec

from ovirt_enforcer.cli.arguments import add_config, add_json, duration
from ovirt_enforcer.cli.documents import MeasuredMigration, PlanDecided
from ovirt_enforcer.history.selecting import about, migrations_about, narrowed
from ovirt_enforcer.history.text import migration_text, plan_text
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.history import HistoryStore, PlanRecord, RecordedMigration

_DAY_SECONDS = 24 * 3600.0


DESCRIPTION = """\
Tell of each plan lately made its steps, what held them back, what became of their migrations, and whether
what they were to repair holds. See docs/enforcer/history.md.
"""

EXAMPLES = """\
  ovirt-enforcer history --since 2h
  ovirt-enforcer history web1 --json
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "history",
        "say what was decided lately, why, and what it brought",
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    parser.add_argument(
        "name", nargs="?", default="", metavar="VM|GROUP", help="only what concerns it (name or id)"
    )
    parser.add_argument(
        "--since",
        type=duration,
        default=_DAY_SECONDS,
        metavar="TIME",
        help="how far back, as 90s, 15m, 2h or 7d (default: 1d; 30 days are remembered)",
    )
    add_config(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    plans, migrations = _read(args)
    if args.json:
        show_json([*map(_plan_data, plans), *migrations])
        return 0
    texts = [(plan.updated, plan_text(plan, args.name)) for plan in plans]
    texts += [(migration.created, migration_text(migration)) for migration in migrations]
    print("\n".join(text for _, text in sorted(texts)) or "nothing was decided")
    return 0


def _read(args: argparse.Namespace) -> tuple[tuple[PlanRecord, ...], tuple[RecordedMigration, ...]]:
    with opened(HistoryStore, args, create=False) as store:
        plans = store.plans(since_seconds=args.since)
        unplanned = store.unplanned(since_seconds=args.since)
    wanted = tuple(narrowed(plan, args.name) for plan in plans if not args.name or about(plan, args.name))
    return wanted, migrations_about(unplanned, args.name)


def _plan_data(plan: PlanRecord) -> PlanDecided:
    migrations = tuple(
        MeasuredMigration(**msgspec.structs.asdict(one), seconds_=one.seconds) for one in plan.migrations
    )
    return PlanDecided(**{**msgspec.structs.asdict(plan), "migrations": migrations})
