"""What a change comes to, before it is made: violated rules, migrations, failures that are survived.

Of groups, keys, rules or policies, and in the question `what-if` of hosts and VMs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.document import Document, fewest_text, find, unit_name
from ovirt_placement.answers.keys import without_effect
from ovirt_placement.answers.plans import remaining_record
from ovirt_placement.answers.plans.maintenance import (
    EvacuationRecord,
    ForeseenMove,
    evacuation_text,
    move_text,
)
from ovirt_placement.answers.plans.text import title
from ovirt_placement.answers.question import REPAIR, SOME_HOSTS, Parameter, conditions_parameter, question
from ovirt_placement.forecast import (
    Change,
    Condition,
    Outlook,
    foresee,
    holding,
    with_host,
    with_keys,
    with_vm,
)
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import (
    GroupOrRule,
    Named,
    NamedCluster,
    NamedHost,
    NamedVm,
    be,
    clusters_of,
    counted,
    named_vms,
    names_of,
)
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.planning.outages import evacuate, foresee_outage
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import LEAVABLE
from ovirt_placement.rules.failover.outcomes import ForeseenFailures
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.store.keys import KeyChange
from ovirt_service.errors import UserError

HARD = frozenset({Repair.HARD})
#: How long migrations are planned, in seconds, and the share of it that emptying hosts may take.
PLANNING_SECONDS = 30.0
_EMPTYING_SHARE = 0.7
#: The exit status where a condition of `--fail-if` is true.
FAILS = 3


def preview(
    state: Snapshot,
    change: Change,
    *,
    repair: frozenset[Repair] = HARD,
    deadline: Deadline = NEVER,
    fail_if: Iterable[Condition] = (),
) -> WhatIfDocument:
    """The violations, migrations and survived failures that a change of a state comes to."""
    named = replace(  # what goes is still to be named
        change.after,
        affinity_groups=tuple({**state.group_by_id, **change.after.group_by_id}.values()),
        placement_rules=tuple({**state.rule_by_id, **change.after.rule_by_id}.values()),
    )
    found = WhatIfDocument(
        clusters=tuple(
            with_names(ForeseenCluster, foresee(state, change.after, cluster, repair, deadline), named)
            for cluster in dict.fromkeys(change.clusters)
        ),
        maintenance=tuple(with_names(EvacuationRecord, one, named) for one in change.emptied),
        conflicts=tuple(change.against),
        starts=tuple(with_names(ForeseenStart, one, named) for one in change.starts),
        stopped=named_vms(change.stopped, named),
        fails=(),
    )
    return replace(found, fails=holding(fail_if, measures(found)))


def changed_keys(state: Snapshot, change: KeyChange, against: Sequence[str] = ()) -> Change:
    """With the keys as they are to be, in every cluster whose policy has their filter."""
    touched = (*change.put, *change.remove)
    concerned = {one.id: one for key in touched for one in clusters_of(key.level, key.resource, state)}
    clusters = [one.id for one in state.clusters if KEY_FILTER in filters_in_force(one)]
    return Change(with_keys(state, change), clusters, (*against, *without_effect(concerned.values())))


# -- What it comes to, as data.
class ForeseenRule(Record, frozen=True, omit_defaults=False):
    """A rule that the change violates or repairs, with the running VMs that violate it."""

    kind: Annotated[str, From("constraint.family")]
    asks: Annotated[str, From("constraint.asks")]
    hard: bool
    groups: tuple[GroupOrRule, ...]
    vms: Annotated[tuple[NamedVm, ...], From("offenders")]
    #: What stands in the way of its repair, as sentences; none of a rule that is repaired.
    because: tuple[str, ...] = ()


class ForeseenCluster(Record, frozen=True, omit_defaults=False, kw_only=True):
    """What becomes of a cluster."""

    cluster: NamedCluster
    violated: Annotated[tuple[ForeseenRule, ...], From("rules.violated")]
    repaired: Annotated[tuple[ForeseenRule, ...], From("rules.repaired")]
    #: Rules that the migrations do not repair.
    remains_violated: Annotated[tuple[ForeseenRule, ...], From(lambda one, state: _remaining(one, state))]
    moves: Annotated[tuple[ForeseenMove, ...], From("plan.steps")]
    #: VMs that are down, and that no host would take any more once the migrations are made.
    barred: tuple[NamedVm, ...]
    #: VMs that are down, and that there was no time to ask about.
    unjudged_starts: int
    #: Whether fewer migrations surely do not repair as much.
    proven: Annotated[bool, From("plan.proven")]
    #: Why nothing is planned there now, in words; empty where all is known.
    doubt: Annotated[str, From(lambda one, state: doubt(state, one.cluster))]
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
    priority: Annotated[
        int | None, From(lambda one, state: state.vm_by_id[one.vm].ha_priority if one.former else None)
    ]
    refused_by: tuple[Annotated[str, lambda rule, _: unit_name(rule)], ...]


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


def _remaining(outlook: Outlook, snapshot: Snapshot) -> Iterator[ForeseenRule]:
    """Of what the change violates, what the migrations do not repair."""
    violated = {(rule.constraint.family, rule.constraint.groups) for rule in outlook.rules.violated}
    for remaining in outlook.plan.remaining:
        if (remaining.family, remaining.groups) in violated:
            rule = remaining_record(remaining, snapshot)
            yield ForeseenRule(rule.family, rule.asks, rule.hard, rule.groups, rule.vms, rule.because)


# -- The question `what-if`: hosts that are emptied, fail or come, and VMs that start.
_LIKE = re.compile(r"like=(.+?)(?:\*([1-9]\d{0,5}))?\Z", re.IGNORECASE)


def _like(text: str) -> tuple[str, int]:
    match = _LIKE.match(text)
    if match is None:
        raise ValueError(f'"{text}": write like=NAME, or like=NAME*20')
    return match[1], int(match[2] or 1)


@question(
    "what-if",
    "predict the effect of maintenance, failures, new hosts and new VMs",
    """\
Predict the effect of maintenance, host failures, new hosts and new VMs, in the order new hosts, maintenance,
failures, new VMs: migrations, violated rules, starts, and how many host failures are survived before and
after. See docs/what-if.md.
The exit status is 3 if a condition of --fail-if is true.
""",
    examples="""\
  ovirt-placement what-if --maintenance node1
  ovirt-placement what-if --down node1,node2
  ovirt-placement what-if --add-host 'like=node1*2' --vm 'like=web1*20' --fail-if unplaced
""",
    text=lambda answer, _: lines(answer),
    status=lambda answer, _: FAILS if answer.fails else 0,
)
def what_if_hosts(
    now: Snapshot,
    *,
    maintenance: Annotated[
        Sequence[Host], Parameter("these hosts go into maintenance", "HOST,...", SOME_HOSTS)
    ] = (),
    down: Annotated[Sequence[Host], Parameter("these hosts fail", "HOST,...", SOME_HOSTS)] = (),
    add_host: Annotated[
        Sequence[tuple[str, int]],
        Parameter(
            "add N empty hosts like this one to its cluster; repeatable",
            "like=HOST[*N]",
            argument={"type": _like, "action": "append", "default": []},
        ),
    ] = (),
    vm: Annotated[
        Sequence[tuple[str, int]],
        Parameter(
            "start N VMs like this one, with its groups and labels; repeatable",
            "like=VM[*N]",
            argument={"type": _like, "action": "append", "default": []},
        ),
    ] = (),
    fail_if: Annotated[
        Sequence[Condition], conditions_parameter("exit with status 3 if any of these is true")
    ] = (),
    repair: Annotated[frozenset[Repair], REPAIR] = HARD,
) -> WhatIfDocument:
    """What comes of it: new hosts are there before others are emptied. Raises `UserError`."""
    if not (maintenance or down or add_host or vm):
        raise UserError("say what is to happen: --maintenance, --down, --add-host or --vm")
    for host in maintenance:
        _check(host, host.status in LEAVABLE)
    for host in down:
        # One that does not answer has failed already: what becomes of its VMs is the question.
        _check(host, host.up or host.id in now.vms_of_host)
        if host in maintenance:
            raise UserError(f"host {host.name} cannot both go into maintenance and fail")
    deadline = Deadline.after(PLANNING_SECONDS)
    state, starting = now, list[str]()
    for name, count in add_host:
        state = with_host(state, find(name, "host", now.hosts).id, count)
    for name, count in vm:
        state, started = with_vm(state, find(name, "VM", now.vms, now).id, count)
        starting.extend(started)
    emptied, state = evacuate(state, tuple(host.id for host in maintenance), deadline.within(_EMPTYING_SHARE))
    found = foresee_outage(state, tuple(host.id for host in down), tuple(starting))
    clusters = (
        *(host.cluster for host in (*maintenance, *down)),
        *(find(name, "host", now.hosts).cluster for name, _ in add_host),
        *(found.end.vm_by_id[one].cluster for one in starting),
    )
    change = Change(found.end, clusters, (), emptied, found.starts, found.stopped)
    return preview(now, change, repair=repair, deadline=deadline, fail_if=fail_if)


def starts_after(state: Snapshot, down: Sequence[str]) -> WhatIfDocument:
    """Where each VM would start if these hosts failed, and nothing more of it."""
    found = foresee_outage(state, tuple(down), ())
    return preview(state, Change(state, (), starts=found.starts, stopped=found.stopped))


def _check(host: Host, in_question: bool) -> None:
    if not in_question:
        raise UserError(f"host {host.name} is not up: its status is {host.status}")


# -- in lines
def lines(found: WhatIfDocument) -> Iterator[str]:
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
    for verb, rules in (("violates", one.violated), ("repairs", one.repaired)):
        yield from (f"  {verb} {_title(rule)}: {rule.asks} ({names_of(rule.vms)})" for rule in rules)
    count = sum(len(move.vms) for move in one.moves)
    if one.doubt:
        yield f"  not known yet, and no migrations are foreseen: {one.doubt}"
    elif not one.violated:
        yield f"  violates no rule, and costs no {further}migrations"
    if one.violated and one.moves:
        least = fewest_text(one.proven, " that repair what can be repaired")
        yield f"  costs {counted(count, 'migration')} ({least}):"
        yield from (f"    {number}. {move_text(move)}" for number, move in enumerate(one.moves, 1))
    for rule in one.remains_violated:
        yield f"  not repaired: {_title(rule)}{f': {rule.asks}' if rule.groups else ''}"
        yield from (f"    - {reason}" for reason in rule.because)
    if one.barred:
        yield f"  {names_of(one.barred)}, which {be(len(one.barred))} down, could start on no host any more"
    if one.unjudged_starts:
        yield f"  not known whether a host would take {counted(one.unjudged_starts, 'VM')} more that are down"
    if one.failures_now or one.failures_changed:
        settled = f", {_count(one.failures_settled)} once the migrations are made" if one.moves else ""
        known = f"{_count(one.failures_now)} now, {_count(one.failures_changed)} with it{settled}"
        yield f"  hosts that may fail at once: {known}"


def _count(known: ForeseenFailures | None) -> str:
    if known is None:
        return "any"
    return f"{known.count}" if known.exact else f"at least {known.count}"


def _title(rule: ForeseenRule) -> str:
    hardness = f", {'hard' if rule.hard else 'soft'}" if rule.groups else ""
    return f"{title(rule.groups)}{hardness}"
