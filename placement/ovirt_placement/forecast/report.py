"""What would come of a change, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ovirt_placement.answers.documents.what_if import (
    ForeseenCluster,
    ForeseenFailures,
    ForeseenMove,
    ForeseenRule,
    ForeseenStart,
    WhatIfDocument,
)
from ovirt_placement.answers.names import (
    group_name,
    host_name,
    named_cluster,
    named_groups,
    named_host,
    named_hosts,
    named_vm,
    named_vms,
    vm_name,
)
from ovirt_placement.forecast.breaking import Broken
from ovirt_placement.forecast.course import Start
from ovirt_placement.forecast.outlook import Outlook, fewest_failures, migrations
from ovirt_placement.forecast.surviving import Survived
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import report as plans
from ovirt_placement.planning.plan import Remaining, Step


@dataclass(frozen=True, slots=True)
class Foreseen:
    """All that is to be told of a change."""

    outlooks: Sequence[Outlook]
    #: For names: it has all that there was and will be.
    snapshot: Snapshot
    conflicts: Sequence[str] = ()
    starts: Sequence[Start] = ()
    stopped: Sequence[str] = ()


def measures(told: Foreseen) -> dict[str, int | None]:
    """What conditions can be about."""
    return {
        "broken": sum(len(one.rules.broken) for one in told.outlooks),
        "conflicts": len(told.conflicts),
        "homeless": sum(start.host is None for start in told.starts),
        "moves": migrations(told.outlooks),
        "failures": fewest_failures(told.outlooks),
    }


def lines(told: Foreseen) -> Iterator[str]:
    """The answer as a person reads it."""
    snapshot = told.snapshot
    yield from (f"speaks against it: {conflict}" for conflict in told.conflicts)
    yield from (_start(start, snapshot) for start in told.starts)
    if told.stopped:
        yield f"stay down, since they are not highly available: {_vms(told.stopped, snapshot)}"
    for one in told.outlooks:
        yield from _cluster(one, snapshot)


def _cluster(one: Outlook, snapshot: Snapshot) -> Iterator[str]:
    yield f"Cluster {snapshot.cluster_by_id[one.cluster].name}:"
    yield from (f"  breaks {_rule(rule, snapshot)}" for rule in one.rules.broken)
    yield from (f"  repairs {_rule(rule, snapshot)}" for rule in one.rules.repaired)
    if not one.rules.broken:
        yield "  breaks no rule, and costs no migrations"
    elif one.plan.steps:
        least = "the fewest that repair what can be repaired" if one.plan.proven else "perhaps fewer would do"
        yield f"  costs {one.plan.migrations} migration{'s' * (one.plan.migrations > 1)} ({least}):"
        yield from (f"  {line}" for line in plans.steps_text(one.plan, snapshot))
    for rule in _staying(one):
        yield f"  stays broken: {plans.rule_text(rule, snapshot) if rule.groups else 'placement keys'}"
        yield from (f"    - {reason}" for reason in rule.because)
    if one.now or one.changed:
        yield f"  hosts that may fail at once: {_failures(one)}"


def _failures(one: Outlook) -> str:
    told = f"{_count(one.now)} now, {_count(one.changed)} with it"
    return f"{told}, {_count(one.settled)} once the migrations are made" if one.plan.steps else told


def _count(known: Survived | None) -> str:
    if known is None:
        return "any"
    return f"{known.failures}" if known.exact else f"at least {known.failures}"


def _rule(rule: Broken, snapshot: Snapshot) -> str:
    groups = " and ".join(group_name(group, snapshot) for group in rule.constraint.groups)
    hardness = "hard" if rule.constraint.hard else "soft"
    what = f"{groups}, {hardness}" if groups else "placement keys"
    return f"{what}: {rule.constraint.asks} ({_vms(rule.vms, snapshot)})"


def _start(start: Start, snapshot: Snapshot) -> str:
    name = vm_name(start.vm, snapshot)
    if start.host is None:
        by = f": refused by {', '.join(start.refused_by)}" if start.refused_by else ""
        return f"{name} finds no host{by}"
    again = f" again, after {host_name(start.former, snapshot)}" if start.former else ""
    return f"{name} starts on {host_name(start.host, snapshot)}{again}"


def _staying(one: Outlook) -> Iterator[Remaining]:
    """Of what the change breaks, what the migrations do not repair."""
    broken = {(rule.constraint.family, rule.constraint.groups) for rule in one.rules.broken}
    return (rule for rule in one.plan.remaining if (rule.family, rule.groups) in broken)


def _vms(vms: Iterable[str], snapshot: Snapshot) -> str:
    return ", ".join(vm_name(vm, snapshot) for vm in vms)


# -- as data


def document(told: Foreseen, fails: Sequence[str]) -> WhatIfDocument:
    """The answer for programs."""
    snapshot = told.snapshot
    return WhatIfDocument(
        clusters=tuple(_cluster_data(one, snapshot) for one in told.outlooks),
        conflicts=tuple(told.conflicts),
        starts=tuple(_start_data(start, snapshot) for start in told.starts),
        stopped=named_vms(told.stopped, snapshot),
        fails=tuple(fails),
    )


def _cluster_data(one: Outlook, snapshot: Snapshot) -> ForeseenCluster:
    return ForeseenCluster(
        cluster=named_cluster(one.cluster, snapshot),
        broken=tuple(_rule_data(rule, snapshot) for rule in one.rules.broken),
        repaired=tuple(_rule_data(rule, snapshot) for rule in one.rules.repaired),
        stays_broken=tuple(
            ForeseenRule(
                rule.family,
                rule.asks,
                rule.hard,
                named_groups(rule.groups, snapshot),
                named_vms(rule.vms, snapshot),
            )
            for rule in _staying(one)
        ),
        moves=tuple(_move_data(step, snapshot) for step in one.plan.steps),
        proven=one.plan.proven,
        failures_now=_failures_data(one.now),
        failures_changed=_failures_data(one.changed),
        failures_settled=_failures_data(one.settled),
    )


def _rule_data(rule: Broken, snapshot: Snapshot) -> ForeseenRule:
    one = rule.constraint
    groups, vms = named_groups(one.groups, snapshot), named_vms(rule.vms, snapshot)
    return ForeseenRule(one.family, one.asks, one.hard, groups, vms)


def _move_data(step: Step, snapshot: Snapshot) -> ForeseenMove:
    sources = named_hosts(step.sources, snapshot)
    return ForeseenMove(named_vms(step.vms, snapshot), sources, named_host(step.target, snapshot), step.after)


def _failures_data(known: Survived | None) -> ForeseenFailures | None:
    return None if known is None else ForeseenFailures(known.failures, known.exact)


def _start_data(start: Start, snapshot: Snapshot) -> ForeseenStart:
    return ForeseenStart(
        named_vm(start.vm, snapshot),
        None if start.host is None else named_host(start.host, snapshot),
        None if start.former is None else named_host(start.former, snapshot),
        start.refused_by,
    )
