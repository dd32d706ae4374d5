"""What would come of a change, before it is made: violated rules, migrations, failures that are survived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from ovirt_placement.answers.document import Document, fewest_text, unit_name
from ovirt_placement.answers.plans import remaining_record
from ovirt_placement.answers.plans.maintenance import (
    EvacuationRecord,
    ForeseenMove,
    evacuation_record,
    evacuation_text,
    move_record,
    move_text,
)
from ovirt_placement.answers.plans.text import title
from ovirt_placement.forecast.changes import Outlook, Violated
from ovirt_placement.forecast.outages import Evacuation, ForeseenFailures, Start
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import (
    GroupOrRule,
    Named,
    NamedCluster,
    NamedHost,
    NamedVm,
    be,
    counted,
    named_vms,
    names_of,
    with_names,
)
from ovirt_placement.model.record import Record
from ovirt_placement.rules.doubts import doubt


class ForeseenRule(Record, frozen=True, omit_defaults=False):
    """A rule that the change violates or repairs, with the running VMs that violate it."""

    kind: str
    asks: str
    hard: bool
    groups: tuple[GroupOrRule, ...]
    vms: tuple[NamedVm, ...]
    #: What stands in the way of its repair, as sentences; none of a rule that is repaired.
    because: tuple[str, ...] = ()


class ForeseenCluster(Record, frozen=True, omit_defaults=False, kw_only=True):
    """What becomes of a cluster."""

    cluster: NamedCluster
    violated: tuple[Annotated[ForeseenRule, foreseen_rule], ...]
    repaired: tuple[Annotated[ForeseenRule, foreseen_rule], ...]
    #: Rules that the migrations do not repair.
    remains_violated: tuple[ForeseenRule, ...]
    moves: tuple[Annotated[ForeseenMove, move_record], ...]
    #: VMs that are down, and that no host would take any more once the migrations are made.
    barred: tuple[NamedVm, ...]
    #: VMs that are down, and that there was no time to ask about.
    unjudged_starts: int
    #: Whether fewer migrations surely do not repair as much.
    proven: bool
    #: Why nothing is planned there now, in words; empty where all is known.
    doubt: str
    #: Now, with the change, and once the migrations are made; null without highly available VMs.
    failures_now: ForeseenFailures | None
    failures_changed: ForeseenFailures | None
    failures_settled: ForeseenFailures | None


class ForeseenStart(Record, frozen=True, omit_defaults=False):
    """A VM that would start."""

    vm: NamedVm
    #: Where; null if every host refuses it.
    host: NamedHost | None
    #: Where it ran before.
    former: NamedHost | None
    #: Of a highly available VM, the engine's: those with more restart earlier. Null of others.
    priority: int | None
    refused_by: tuple[str, ...]


class WhatIfDocument(Document, frozen=True, kw_only=True, tag="what_if"):
    """What would come of a change, before it is made."""

    clusters: tuple[ForeseenCluster, ...]
    #: What it takes to empty the hosts that are to go into maintenance.
    maintenance: tuple[EvacuationRecord, ...]
    #: What speaks against it or is odd about it, as sentences.
    conflicts: tuple[str, ...]
    #: In their order, where hosts fail or VMs start.
    starts: tuple[ForeseenStart, ...]
    #: VMs that stop with their host, and are not highly available.
    stopped: tuple[Named, ...]
    #: Conditions of `--fail-if` that hold.
    fails: tuple[str, ...]


def what_if(
    outlooks: Iterable[Outlook],
    snapshot: Snapshot,
    conflicts: Sequence[str] = (),
    starts: Sequence[Start] = (),
    stopped: Sequence[str] = (),
    maintenance: Sequence[Evacuation] = (),
) -> WhatIfDocument:
    """What a change comes to; `snapshot` has all names that there were and will be."""
    return WhatIfDocument(
        clusters=tuple(_cluster(one, snapshot) for one in outlooks),
        maintenance=tuple(evacuation_record(one, snapshot) for one in maintenance),
        conflicts=tuple(conflicts),
        starts=tuple(_start(start, snapshot) for start in starts),
        stopped=named_vms(stopped, snapshot),
        fails=(),
    )


def measures(found: WhatIfDocument) -> dict[str, int | None]:
    """What the conditions of `--fail-if` can be about; failures are those surely survived everywhere."""
    moves = [move for one in found.maintenance for move in one.moves]
    moves += [move for one in found.clusters for move in one.moves]
    failures = (known for one in found.clusters for known in (one.failures_changed, one.failures_settled))
    return {
        "violated": sum(len(one.violated) for one in found.clusters),
        "conflicts": len(found.conflicts),
        "unplaced": sum(start.host is None for start in found.starts)
        + sum(len(one.barred) for one in found.clusters),
        "moves": sum(len(move.vms) for move in moves),
        "staying": sum(len(one.staying) for one in found.maintenance),
        "failures": min((known.count for known in failures if known is not None), default=None),
    }


def _cluster(one: Outlook, snapshot: Snapshot) -> ForeseenCluster:
    return with_names(
        ForeseenCluster,
        one,
        snapshot,
        violated=one.rules.violated,
        repaired=one.rules.repaired,
        remains_violated=tuple(_staying(one, snapshot)),
        moves=one.plan.steps,
        barred=one.barred.vms,
        unjudged_starts=one.barred.unjudged,
        proven=one.plan.proven,
        doubt=doubt(snapshot, one.cluster),
    )


def foreseen_rule(rule: Violated, snapshot: Snapshot) -> ForeseenRule:
    """A rule with names; what stands in the way of its repair is not known yet."""
    one = rule.constraint
    return with_names(ForeseenRule, one, snapshot, kind=one.family, vms=rule.vms, because=())


def _staying(one: Outlook, snapshot: Snapshot) -> Iterator[ForeseenRule]:
    """Of what the change violates, what the migrations do not repair."""
    violated = {(rule.constraint.family, rule.constraint.groups) for rule in one.rules.violated}
    for remaining in one.plan.remaining:
        if (remaining.family, remaining.groups) in violated:
            rule = remaining_record(remaining, snapshot)
            yield ForeseenRule(rule.family, rule.asks, rule.hard, rule.groups, rule.vms, rule.because)


def _start(start: Start, snapshot: Snapshot) -> ForeseenStart:
    priority = None if start.former is None else snapshot.vm_by_id[start.vm].ha_priority
    refused_by = tuple(map(unit_name, start.refused_by))
    return with_names(ForeseenStart, start, snapshot, priority=priority, refused_by=refused_by)


# -- in lines
def lines(found: WhatIfDocument) -> Iterator[str]:
    """The answer as a person reads it."""
    yield from (f"speaks against it: {conflict}" for conflict in found.conflicts)
    for evacuation in found.maintenance:
        yield from evacuation_text(evacuation)
    by_priority = len({start.priority for start in found.starts} - {None}) > 1
    yield from (_start_text(start, by_priority=by_priority) for start in found.starts)
    if found.stopped:
        yield f"stay down, since they are not highly available: {names_of(found.stopped)}"
    for one in found.clusters:
        yield from _cluster_text(one, further="further " if found.maintenance else "")
    yield from (f"--fail-if: {one}" for one in found.fails)


def _start_text(start: ForeseenStart, *, by_priority: bool) -> str:
    """Priorities are shown where they differ: then they say the order."""
    name = start.vm.name
    if by_priority and start.priority is not None:
        name += f" (priority {start.priority})"
    if start.host is None:
        by = f": refused by {', '.join(start.refused_by)}" if start.refused_by else ""
        return f"{name} finds no host{by}"
    again = f" again, after {start.former.name}" if start.former else ""
    return f"{name} starts on {start.host.name}{again}"


def _cluster_text(one: ForeseenCluster, further: str) -> Iterator[str]:
    yield f"Cluster {one.cluster.name}:"
    yield from (f"  violates {_rule_text(rule)}" for rule in one.violated)
    yield from (f"  repairs {_rule_text(rule)}" for rule in one.repaired)
    if one.doubt:
        yield f"  not known yet, and no migrations are foreseen: {one.doubt}"
    count = sum(len(move.vms) for move in one.moves)
    if not one.violated:
        yield f"  violates no rule, and costs no {further}migrations"
    elif one.moves:
        least = fewest_text(one.proven, " that repair what can be repaired")
        yield f"  costs {counted(count, 'migration')} ({least}):"
        yield from (f"    {number}. {move_text(move)}" for number, move in enumerate(one.moves, 1))
    for rule in one.remains_violated:
        asks = f", {_hardness(rule)}: {rule.asks}" if rule.groups else ""
        yield f"  not repaired: {title(rule.groups)}{asks}"
        yield from (f"    - {reason}" for reason in rule.because)
    if one.barred:
        yield f"  {names_of(one.barred)}, which {be(len(one.barred))} down, could start on no host any more"
    if one.unjudged_starts:
        yield f"  not known whether a host would take {counted(one.unjudged_starts, 'VM')} more that are down"
    if one.failures_now or one.failures_changed:
        yield f"  hosts that may fail at once: {_failures_text(one)}"


def _failures_text(one: ForeseenCluster) -> str:
    text = f"{_count(one.failures_now)} now, {_count(one.failures_changed)} with it"
    return f"{text}, {_count(one.failures_settled)} once the migrations are made" if one.moves else text


def _count(known: ForeseenFailures | None) -> str:
    if known is None:
        return "any"
    return f"{known.count}" if known.exact else f"at least {known.count}"


def _rule_text(rule: ForeseenRule) -> str:
    what = title(rule.groups) + (f", {_hardness(rule)}" if rule.groups else "")
    return f"{what}: {rule.asks} ({names_of(rule.vms)})"


def _hardness(rule: ForeseenRule) -> str:
    return "hard" if rule.hard else "soft"
