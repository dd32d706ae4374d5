"""`ovirt-enforcer history`: what was decided lately, what came of it, and why."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from ovirt_enforcer.cli.arguments import add_config, add_json, duration
from ovirt_enforcer.history.selecting import about, migrations_about, narrowed
from ovirt_enforcer.history.telling import migration_text, plan_text
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.history import HistoryStore, Migration, PlanRecord

_DAY_SECONDS = 24 * 3600.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("history", help="say what was decided lately, why, and what it brought")
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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    plans, migrations = _read(args)
    if args.json:
        document = [*map(_plan_data, plans), *({"plan": None, **_data(one)} for one in migrations)]
        show_json(document)
        return 0
    texts = [(plan.updated, plan_text(plan, args.name)) for plan in plans]
    texts += [(migration.created, migration_text(migration)) for migration in migrations]
    print("\n".join(text for _, text in sorted(texts)) or "nothing was decided")
    return 0


def _read(args: argparse.Namespace) -> tuple[tuple[PlanRecord, ...], tuple[Migration, ...]]:
    with opened(HistoryStore, args, create=False) as store:
        plans = store.plans(since_seconds=args.since)
        unplanned = store.unplanned(since_seconds=args.since)
    wanted = tuple(narrowed(plan, args.name) for plan in plans if not args.name or about(plan, args.name))
    return wanted, migrations_about(unplanned, args.name)


def _plan_data(plan: PlanRecord) -> dict[str, Any]:
    return {**_data(plan), "migrations": [{**_data(one), "seconds": one.seconds} for one in plan.migrations]}


def _data(record: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields
