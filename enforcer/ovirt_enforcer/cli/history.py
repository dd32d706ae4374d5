"""`ovirt-enforcer history`: what happened lately and why, and how that developed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import asdict

from ovirt_enforcer.cli.plan import duration
from ovirt_enforcer.history import (
    Subject,
    Wanted,
    migration_text,
    moment,
    plan_texts,
    selected,
    superseded,
    user_actions_about,
)
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import Document, find, table
from ovirt_placement.answers.status import history
from ovirt_placement.answers.status.history import named_cluster_of
from ovirt_placement.cli.changes import opened, stored
from ovirt_placement.cli.questions import (
    PATIENCE_SECONDS,
    add_command,
    add_config,
    add_json,
    show_json,
    show_text,
)
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.store.enforcer.history import HeldStep, HistoryStore, PlanRecord, RecordedMigration
from ovirt_placement.store.enforcer.observations import KEPT_SECONDS, SampleStore
from ovirt_placement.store.user_actions import UserAction, UserActionStore


class MeasuredMigration(RecordedMigration, frozen=True, kw_only=True):
    """A migration of a plan."""

    #: From before it was asked for until its state was last changed.
    seconds_: float = msgspec.field(name="seconds")


class UserActionDone(UserAction, frozen=True, kw_only=True):
    """What a user did by a command. Moments are seconds since the epoch."""

    #: Who did what, where, and what came of it.
    sentence_: str = msgspec.field(name="sentence")


class PlanDecided(PlanRecord, frozen=True, kw_only=True):
    """A plan that was made, with all that came of it. Times are seconds since the epoch."""

    migrations: tuple[MeasuredMigration, ...]
    #: Steps that a gate held back.
    held: tuple[HeldStep, ...]


_DAY_SECONDS: Final = 24 * 3600.0
#: Unless the command says how far back: plans of a day, totals and user actions of a week, trends of a month.
_WEEK_SECONDS: Final = 7 * _DAY_SECONDS
_TREND_SECONDS: Final = 30 * _DAY_SECONDS
#: How many of the last user actions stand below the days.
_LATEST: Final = 10
_Answer = TypeVar("_Answer", bound=Document)

HISTORY = """\
Show totals and a line for each day; with --plans, or for a VM, host or group, plans with their steps and
results; with --trend, trends; with --who, what users did. See docs/enforcer/history.md.
"""
HISTORY_EXAMPLES = """\
  ovirt-enforcer history --plans --since 2h
  ovirt-enforcer history --vm web1 --since 7d --json
  ovirt-enforcer history --trend --cluster production --since 90d
"""


def add_history(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "history", summary, HISTORY, _run_history, HISTORY_EXAMPLES)
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


def _run_history(args: argparse.Namespace) -> int:
    if args.vm:
        wanted = Wanted(args.vm, Subject.VM)
    elif args.host:
        wanted = Wanted(args.host, Subject.HOST)
    else:
        wanted = Wanted(args.name)
    if args.trend:
        _show_trend(args)
    elif args.who or args.plans or wanted.name:
        _show_plans(args, wanted)
    else:
        _show_days(args)
    return 0


def _show_plans(args: argparse.Namespace, wanted: Wanted) -> None:
    wanted, plans, migrations, replaced = (wanted, (), (), {}) if args.who else _read(args, wanted)
    actions = _actions(args, _WEEK_SECONDS if args.who else _DAY_SECONDS)
    actions = user_actions_about(actions, plans, wanted.name)
    if args.json:
        done = (UserActionDone(**asdict(one), sentence_=one.sentence) for one in actions)
        show_json([*map(_plan_decided, plans), *migrations, *done])
        return
    # Who asks about something in particular is shown all that concerns it.
    texts = [*plan_texts(plans, replaced, wanted, fold=not (args.all or wanted.name))]
    texts += [(migration.created, migration_text(migration)) for migration in migrations]
    texts += [(action.created, _action_text(action)) for action in actions]
    nothing = "no actions" if args.who else "nothing was decided"
    print("\n".join(text for _, text in sorted(texts)) or nothing)


def _read(
    args: argparse.Namespace, wanted: Wanted
) -> tuple[Wanted, tuple[PlanRecord, ...], tuple[RecordedMigration, ...], Mapping[str, str]]:
    """What was asked about and decided, and which plan superseded which. Raises `UserError`."""
    seconds = args.since or _DAY_SECONDS
    with opened(HistoryStore, args, create=False) as store:
        plans, migrations = store.plans(since_seconds=seconds), store.unplanned(since_seconds=seconds)
    wanted = wanted.known_by(plans)
    found = selected(plans, migrations, args.cluster, wanted)
    if not any(found) and (wanted.name or args.cluster):
        # A migration whose plan is not known has ids alone, and what nothing is known of may be mistyped.
        if wanted.name:
            wanted = wanted._replace(ids=frozenset({_found(args, wanted.name, wanted.subject).id}))
        cluster = _found(args, args.cluster, "cluster").id if args.cluster else None
        found = selected(plans, migrations, cluster, wanted)
    return wanted, *found, superseded(plans)


def _found(args: argparse.Namespace, name: str, what: str) -> Named:
    snapshot = inventory.snapshot(config=configuration.load(args.config), deadline=PATIENCE_SECONDS)
    entities: Sequence[Cluster | Host | Vm | AffinityGroup | AffinityLabel]
    if what == "cluster":
        entities = snapshot.clusters
    elif what == Subject.HOST:
        entities = snapshot.hosts
    else:
        entities = snapshot.vms
        if what != Subject.VM:
            entities = (*entities, *snapshot.affinity_groups, *snapshot.affinity_labels)
    one = find(name, what, entities)
    return Named(one.id, one.name)


def _plan_decided(plan: PlanRecord) -> PlanDecided:
    migrations = tuple(MeasuredMigration(**asdict(one), seconds_=one.seconds) for one in plan.migrations)
    return PlanDecided(**{**asdict(plan), "migrations": migrations})


def _show_days(args: argparse.Namespace) -> None:
    answer = _answer(args, _WEEK_SECONDS, history.history)
    if args.json:
        show_json(answer)
        return
    show_text([*history.history_lines(answer), table(answer.days, history.DAY_COLUMNS)])
    if actions := _actions(args, _WEEK_SECONDS):
        left = len(actions) - _LATEST
        more = f" (the last {_LATEST} of {len(actions)}; --who shows all)" if left > 0 else ""
        print("\n".join([f"\nWho did it{more}:", *map(_action_text, actions[-_LATEST:])]))


def _show_trend(args: argparse.Namespace) -> None:
    answer = _answer(args, _TREND_SECONDS, history.trend)
    if args.json:
        show_json(answer)
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    for line in history.trend_lines(answer, plain=encoding != "utf8"):
        print(line)


def _answer(args: argparse.Namespace, usual_seconds: float, answer: Callable[..., _Answer]) -> _Answer:
    """By the samples of the cluster asked about: one of the history, else of the engine."""
    seconds = min(args.since or usual_seconds, KEPT_SECONDS)
    with opened(SampleStore, args, create=False) as store:
        until, samples = store.samples(since_seconds=seconds)
    cluster = None
    if args.cluster is not None:
        known = {one.cluster: named_cluster_of(one.cluster, samples) for one in samples}
        named = [one for one in known.values() if args.cluster in (one.id, one.name)]
        cluster = named[0] if len(named) == 1 else _found(args, args.cluster, "cluster")
    return answer(samples, cluster=cluster, since=until - seconds, until=until)


def _actions(args: argparse.Namespace, usual_seconds: float) -> tuple[UserAction, ...]:
    seconds = args.since or usual_seconds
    done = stored(UserActionStore, args, lambda store: store.actions(since_seconds=seconds), ())
    return tuple(one for one in done if args.cluster in (None, one.cluster, one.cluster_name))


def _action_text(action: UserAction) -> str:
    return f"{moment(action.created)}  {action.sentence}"
