"""`ovirt-enforcer history` and `why-not`: what happened lately and why, and why a VM has not been moved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from ovirt_enforcer.cli.arguments import duration
from ovirt_enforcer.history import (
    FoldedPlans,
    KnownHistory,
    Subject,
    Wanted,
    about,
    folded,
    folded_text,
    migration_text,
    migrations_about,
    moment,
    narrowed,
    plan_text,
    superseded,
    user_actions_about,
    why_not,
    why_not_text,
)
from ovirt_enforcer.plans import Asked
from ovirt_enforcer.settings import recorded_settings
from ovirt_placement import config, inventory
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import Document, find
from ovirt_placement.answers.status import history
from ovirt_placement.answers.status.enforcement import not_led
from ovirt_placement.answers.status.history import named_cluster_of
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.asking import PATIENCE_SECONDS, show, show_json
from ovirt_placement.cli.changing import opened, stored
from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.enforcer_records import EnforcerSettingsStore, differences
from ovirt_placement.store.history import HeldStep, HistoryStore, PlanRecord, RecordedMigration
from ovirt_placement.store.intents import Store
from ovirt_placement.store.samples import KEPT_SECONDS, Sample, SampleStore
from ovirt_placement.store.user_actions import UserAction, UserActionStore


class MeasuredMigration(RecordedMigration, frozen=True, kw_only=True):
    """A migration of a plan."""

    #: From before it was asked for until its state was last changed.
    seconds_: float = msgspec.field(name="seconds")


class UserActionDone(UserAction, frozen=True, kw_only=True):
    """What a user did by a command. Moments are seconds since the epoch."""

    #: Who did what, where, and what came of it.
    sentence_: str = msgspec.field(name="sentence")


class PlanDecided(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A plan that was made, with all that came of it. Times are seconds since the epoch."""

    id: str
    cluster: str
    #: Of the lease under which it was made; null if by a person.
    epoch: int | None
    #: As one of `clusters` that `plan --json` prints, by the release that made it.
    document: dict[str, Any]
    created: float
    updated: float
    migrations: tuple[MeasuredMigration, ...]
    #: Steps that a gate held back.
    held: tuple[HeldStep, ...]


_DAY_SECONDS = 24 * 3600.0
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
    if args.trend:
        return _show_trend(args)
    wanted = _wanted(args)
    if args.who:
        return _show_actions(args)
    if not wanted.name and not args.plans:
        return _show_days(args) or _show_latest_actions(args)
    found = _read(args, wanted)
    actions = _actions_about(args, args.since or _DAY_SECONDS, found.plans, wanted.name)
    if args.json:
        show_json([*map(_plan_data, found.plans), *found.migrations, *_action_data(actions)])
        return 0
    texts = [*_plan_texts(args, found, wanted)]
    texts += [(migration.created, migration_text(migration)) for migration in found.migrations]
    texts += [(action.created, _action_text(action)) for action in actions]
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


#: Unless the command says how far back: a week by the day, and a month drawn.
_DAYS_SECONDS = 7 * _DAY_SECONDS
_TREND_SECONDS = 30 * _DAY_SECONDS
_Answer = TypeVar("_Answer", bound=Document)


def _show_days(args: argparse.Namespace) -> int:
    """Print totals and a line a day."""
    answer = _answer(args, _DAYS_SECONDS, history.history)
    if args.json:
        show_json(answer)
        return 0
    for line in history.history_lines(answer):
        print(line)
    show(history.history_rows(answer), history.HISTORY_HEADERS)
    return 0


def _show_trend(args: argparse.Namespace) -> int:
    """Print how clusters developed."""
    answer = _answer(args, _TREND_SECONDS, history.trend)
    if args.json:
        show_json(answer)
        return 0
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    for line in history.trend_lines(answer, plain=encoding != "utf8"):
        print(line)
    return 0


def _answer(args: argparse.Namespace, usual_seconds: float, answer: Callable[..., _Answer]) -> _Answer:
    seconds = min(args.since or usual_seconds, KEPT_SECONDS)
    with opened(SampleStore, args, create=False) as store:
        until, samples = store.samples(since_seconds=seconds)
    cluster = _cluster(args, samples)
    return answer(samples, cluster=cluster, since=until - seconds, until=until)


def _cluster(args: argparse.Namespace, samples: tuple[Sample, ...]) -> Named | None:
    """The cluster asked about: of the history, else of the engine, else `UserError` with the nearest name."""
    if args.cluster is None:
        return None
    known = {one.cluster: named_cluster_of(one.cluster, samples) for one in samples}
    named = [one for one in known.values() if args.cluster in (one.id, one.name)]
    if len(named) == 1:
        return named[0]
    snapshot = inventory.snapshot(config=config.load(args.config), deadline=PATIENCE_SECONDS)
    found = find(args.cluster, "cluster", snapshot.clusters)
    return Named(found.id, found.name)


#: How far back by default.
_ACTIONS_SECONDS: Final = 7 * 24 * 3600.0
#: Below the days stand this many, the last ones.
_LATEST: Final = 10


def _show_actions(args: argparse.Namespace) -> int:
    """Print all that people did, or as data."""
    found = _actions_about(args, args.since or _ACTIONS_SECONDS, (), "")
    if args.json:
        show_json([*_action_data(found)])
    else:
        print("\n".join(map(_action_text, found)) or "no actions")
    return 0


def _show_latest_actions(args: argparse.Namespace) -> int:
    """Print what people did last, below other views; data are printed by `_show_actions` alone."""
    found = () if args.json else _actions_about(args, args.since or _ACTIONS_SECONDS, (), "")
    if found:
        more = len(found) - _LATEST
        print(f"\nWho did it{f' (the last {_LATEST} of {len(found)}; --who shows all)' if more > 0 else ''}:")
        print("\n".join(_action_text(one) for one in found[-_LATEST:]))
    return 0


def _actions_about(
    args: argparse.Namespace, seconds: float, plans: Iterable[PlanRecord], name: str
) -> tuple[UserAction, ...]:
    """What people did within this many seconds: with these plans, with what is called so, in a cluster."""
    done = stored(UserActionStore, args, lambda store: store.actions(since_seconds=seconds), ())
    wanted = (one for one in done if args.cluster in (None, one.cluster, one.cluster_name))
    return user_actions_about(wanted, plans, name)


def _action_text(action: UserAction) -> str:
    """When, and who did what."""
    return f"{moment(action.created)}  {action.sentence}"


def _action_data(actions: Iterable[UserAction]) -> Iterator[UserActionDone]:
    """The same for programs."""
    for action in actions:
        yield UserActionDone(**msgspec.structs.asdict(action), sentence_=action.sentence)


WHY_NOT = """\
Show which rules a VM violates, and why each is not repaired yet: a gate, a plan, a failed migration.
"""
WHY_NOT_EXAMPLES = """\
  ovirt-enforcer why-not web1
"""


def add_why_not(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "why-not", summary, WHY_NOT, _run_why_not, WHY_NOT_EXAMPLES)
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_config(parser)
    add_json(parser)


def _run_why_not(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for the history.
    from ovirt_enforcer.engine_state import read_engine_state

    config = configuration.load(args.config)
    found = read_engine_state(config, PATIENCE_SECONDS)
    vm = find(args.vm, "VM", found.snapshot.vms, found.snapshot)
    answer = why_not(vm, _known(found, args, vm))
    if args.json:
        show_json(answer)
    else:
        print(why_not_text(answer))
    return 0


def _known(found: Asked, args: argparse.Namespace, vm: Vm) -> KnownHistory:
    with opened(HistoryStore, args, create=False) as history:
        plans = [plan for plan in history.plans(since_seconds=_DAY_SECONDS) if plan.cluster == vm.cluster]
    with opened(Store, args, create=False) as store:
        under_way = store.open_intents()
        ended = store.history(within_seconds=_DAY_SECONDS, vm=vm.id)
    with opened(EnforcerSettingsStore, args, create=False) as settings:
        there = settings.of_leader()
    return KnownHistory(
        snapshot=found.snapshot,
        frozen=found.holding.frozen,
        held_groups=found.holding.spared,
        plan=plans[-1] if plans else None,
        under_way=under_way,
        ended=ended,
        not_led=not_led(configuration.load(args.config)),
        other_settings=_other_settings(found, there),
    )


def _other_settings(found: Asked, there: Mapping[str, Any] | None) -> tuple[str, ...]:
    """In which settings the enforcer that leads differs from those here; none where it is not known."""
    if found.settings is None or there is None:
        return ()
    return differences(there, "here", recorded_settings(found.settings))
