"""`ovirt-enforcer history`: what happened lately, in sum, by the plan, or as a trend."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ovirt_enforcer.cli import history_actions, history_views
from ovirt_enforcer.cli.arguments import duration
from ovirt_enforcer.cli.documents import MeasuredMigration, PlanDecided
from ovirt_enforcer.history.selecting import Subject, Wanted, about, migrations_about, narrowed
from ovirt_enforcer.history.superseding import FoldedPlans, folded, superseded
from ovirt_enforcer.history.text import folded_text, migration_text, plan_text
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.finding import find
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, Vm
from ovirt_placement.store.history import HistoryStore, PlanRecord, RecordedMigration

_DAY_SECONDS = 24 * 3600.0


DESCRIPTION = """\
Show totals and a line for each day; with --plans, or for a VM, host or group, plans with their steps and
results; with --trend, trends; with --who, what users did. See docs/enforcer/history.md.
"""

EXAMPLES = """\
  ovirt-enforcer history --plans --since 2h
  ovirt-enforcer history --vm web1 --since 7d --json
  ovirt-enforcer history --trend --cluster production --since 90d
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "history",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("name", nargs="?", default="", metavar="VM|GROUP", help="plans about it")
    asked.add_argument("--vm", metavar="VM", help="plans about this VM")
    asked.add_argument("--host", metavar="HOST", help="migrations from and to this host")
    asked.add_argument("--trend", action="store_true", help="violations, migrations and HA margins as a plot")
    asked.add_argument("--who", action="store_true", help="what people did: who, where and when")
    parser.add_argument("--plans", action="store_true", help="each plan with its steps")
    parser.add_argument("--all", action="store_true", help="also the steps of superseded plans")
    parser.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    parser.add_argument(
        "--since",
        type=duration,
        metavar="TIME",
        help="how far back: 90s, 15m, 2h, 7d (default: 7d, plans 1d, trends 30d)",
    )
    add_config(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.trend:
        return history_views.show_trend(args)
    wanted = _wanted(args)
    if args.who:
        return history_actions.show(args)
    if not wanted.name and not args.plans:
        return history_views.show_days(args) or history_actions.show_latest(args)
    found = _read(args, wanted)
    actions = history_actions.about(args, args.since or _DAY_SECONDS, found.plans, wanted.name)
    if args.json:
        show_json([*map(_plan_data, found.plans), *found.migrations, *history_actions.data(actions)])
        return 0
    texts = [*_plan_texts(args, found, wanted)]
    texts += [(migration.created, migration_text(migration)) for migration in found.migrations]
    texts += [(action.created, history_actions.text(action)) for action in actions]
    print("\n".join(text for _, text in sorted(texts)) or "nothing was decided")
    return 0


def _wanted(args: argparse.Namespace) -> Wanted:
    if args.vm:
        return Wanted(args.vm, Subject.VM)
    if args.host:
        return Wanted(args.host, Subject.HOST)
    return Wanted(args.name)


class _Found(NamedTuple):
    """What was decided, as far as it was asked about."""

    plans: tuple[PlanRecord, ...]
    #: Migrations of which no plan is known.
    migrations: tuple[RecordedMigration, ...]
    #: Of plans that were superseded, by which.
    replaced: Mapping[str, str]


def _plan_texts(args: argparse.Namespace, found: _Found, wanted: Wanted) -> Iterator[tuple[float, str]]:
    """Plans in words; who asks about something in particular is shown all that concerns it."""
    shown = found.plans if args.all or wanted.name else folded(found.plans, found.replaced)
    for one in shown:
        if isinstance(one, FoldedPlans):
            yield one.updated, folded_text(one)
        else:
            yield one.updated, plan_text(one, wanted, found.replaced.get(one.id))


def _read(args: argparse.Namespace, wanted: Wanted) -> _Found:
    """Raises `UserError` for a name that neither the history nor the engine knows."""
    seconds = args.since or _DAY_SECONDS
    with opened(HistoryStore, args, create=False) as store:
        plans = store.plans(since_seconds=seconds)
        unplanned = store.unplanned(since_seconds=seconds)
    found = _selected(_Found(plans, unplanned, superseded(plans)), args.cluster, wanted)
    if found.plans or found.migrations or not (wanted.name or args.cluster):
        return found
    # A migration whose plan is not known has ids alone, and what nothing is known of may be mistyped.
    by_id = wanted._replace(name=_id(args, wanted.name, wanted.subject)) if wanted.name else wanted
    cluster = _id(args, args.cluster, "cluster") if args.cluster else None
    return _selected(_Found(plans, unplanned, found.replaced), cluster, by_id)


def _selected(found: _Found, cluster: str | None, wanted: Wanted) -> _Found:
    plans = (
        narrowed(plan, wanted)
        for plan in found.plans
        if cluster in (None, plan.cluster, plan.document.get("cluster", {}).get("name"))
        and (not wanted.name or about(plan, wanted))
    )
    migrations = (one for one in found.migrations if cluster in (None, one.cluster))
    return found._replace(plans=tuple(plans), migrations=migrations_about(migrations, wanted))


def _id(args: argparse.Namespace, name: str, what: str) -> str:
    """What a name denotes in the engine; raises `UserError` with the nearest name."""
    snapshot = inventory.snapshot(config=configuration.load(args.config), deadline=PATIENCE_SECONDS)
    things: Sequence[Cluster | Host | Vm | AffinityGroup | AffinityLabel]
    if what == "cluster":
        things = snapshot.clusters
    elif what == Subject.HOST:
        things = snapshot.hosts
    elif what == Subject.VM:
        things = snapshot.vms
    else:
        things = (*snapshot.vms, *snapshot.affinity_groups, *snapshot.affinity_labels)
    return find(name, what, things).id


def _plan_data(plan: PlanRecord) -> PlanDecided:
    migrations = tuple(
        MeasuredMigration(**msgspec.structs.asdict(one), seconds_=one.seconds) for one in plan.migrations
    )
    return PlanDecided(**{**msgspec.structs.asdict(plan), "migrations": migrations})
