"""What a change comes to, before it is made: of groups, keys, rules or policies, of hosts and VMs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.document import find
from ovirt_placement.answers.keys import without_effect
from ovirt_placement.answers.plans.what_if import WhatIfDocument, lines, measures, what_if
from ovirt_placement.answers.question import REPAIR, SOME_HOSTS, Parameter, conditions_parameter, question
from ovirt_placement.engine.policies import Policy
from ovirt_placement.forecast.changes import (
    Condition,
    foresee,
    holding,
    with_group,
    with_host,
    with_keys,
    with_vm,
    without_group,
)
from ovirt_placement.forecast.outages import Evacuation, Start, course, evacuate
from ovirt_placement.model import AffinityGroup, Host, PlacementKey, Snapshot
from ovirt_placement.model.names import clusters_of
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.elements.placement import LEAVABLE
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.keys import KeyChange
from ovirt_placement.store.placement_rules import RuleChange
from ovirt_service.errors import UserError

HARD = frozenset({Repair.HARD})


#: How long migrations are planned, in seconds, and the share of it that emptying hosts may take.
PLANNING_SECONDS = 30.0
_EMPTYING_SHARE = 0.7
#: The exit status where a condition of `--fail-if` is true.
FAILS = 3


class Change(NamedTuple):
    """A state with a change, the clusters that it concerns, and what speaks against it, as sentences."""

    after: Snapshot
    clusters: Iterable[str]
    against: Sequence[str] = ()
    #: What hosts are emptied by, where hosts fail or VMs start, and VMs that stay down with their hosts.
    emptied: Sequence[Evacuation] = ()
    starts: Sequence[Start] = ()
    stopped: Sequence[str] = ()


def preview(
    state: Snapshot,
    change: Change,
    *,
    repair: frozenset[Repair] = HARD,
    deadline: Deadline,
    fail_if: Iterable[Condition] = (),
) -> WhatIfDocument:
    """The violations, migrations and survived failures that a change of a state comes to.

    It fails by those conditions that are true.
    """
    outlooks = foresee(
        state, change.after, tuple(dict.fromkeys(change.clusters)), repair=repair, deadline=deadline
    )
    named = replace(  # what goes is still to be named
        change.after,
        affinity_groups=tuple({**state.group_by_id, **change.after.group_by_id}.values()),
        placement_rules=tuple({**state.rule_by_id, **change.after.rule_by_id}.values()),
    )
    found = what_if(
        outlooks, named, change.against, change.starts, change.stopped, maintenance=change.emptied
    )
    return replace(found, fails=holding(fail_if, measures(found)))


def changed_groups(
    state: Snapshot,
    gone: Sequence[AffinityGroup] = (),
    meant: Sequence[AffinityGroup] = (),
    against: Sequence[str] = (),
) -> Change:
    """Without the groups that are to be gone, and with others as they are meant to be."""
    after = state
    for group in gone:
        after = without_group(after, group.id)
    for group in meant:
        after = with_group(after, replace(group, id=group.id or group.name))  # a new one has no id yet
    return Change(after, [group.cluster for group in (*gone, *meant)], against)


def changed_keys(state: Snapshot, change: KeyChange, against: Sequence[str] = ()) -> Change:
    """With the keys as they are to be, in every cluster whose policy has their filter."""
    touched = (*change.put, *change.remove)
    concerned = {one.id: one for key in touched for one in clusters_of(key.level, key.resource, state)}
    clusters = [one.id for one in state.clusters if KEY_FILTER in filters_in_force(one)]
    return Change(with_keys(state, change), clusters, (*against, *without_effect(concerned.values())))


def changed_rules(state: Snapshot, change: RuleChange, against: Sequence[str] = ()) -> Change:
    """With the rules as they are to be, in the clusters of those that come, change or go."""
    names = {*change.remove, *(rule.name for rule in change.put)}
    kept = (rule for rule in state.placement_rules if rule.name not in names)
    after = replace(state, placement_rules=(*kept, *change.put))
    clusters = [
        found.cluster
        for each in (state, after)
        for found in resolved_rules(each)
        if found.rule.name in names and found.cluster is not None
    ]
    return Change(after, clusters, against)


def changed_policies(
    state: Snapshot, policies: Mapping[str, Policy], keys: Iterable[PlacementKey], against: Sequence[str] = ()
) -> Change:
    """With other policies, by cluster, and with the special keys that their clusters are given."""
    clusters = tuple(
        replace(one, policy=policy.factors, scheduling_policy=policy.external)
        if (policy := policies.get(one.id))
        else one
        for one in state.clusters
    )
    after = with_keys(replace(state, clusters=clusters), KeyChange(put=tuple(keys)))
    return Change(after, policies, against)


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
        Sequence[Host],
        Parameter(help="these hosts go into maintenance", metavar="HOST,...", names=SOME_HOSTS),
    ] = (),
    down: Annotated[
        Sequence[Host], Parameter(help="these hosts fail", metavar="HOST,...", names=SOME_HOSTS)
    ] = (),
    add_host: Annotated[
        Sequence[tuple[str, int]],
        Parameter(
            help="add N empty hosts like this one to its cluster; repeatable",
            metavar="like=HOST[*N]",
            argument={"type": _like, "action": "append", "default": []},
        ),
    ] = (),
    vm: Annotated[
        Sequence[tuple[str, int]],
        Parameter(
            help="start N VMs like this one, with its groups and labels; repeatable",
            metavar="like=VM[*N]",
            argument={"type": _like, "action": "append", "default": []},
        ),
    ] = (),
    fail_if: Annotated[
        Sequence[Condition], conditions_parameter("exit with status 3 if any of these is true")
    ] = (),
    repair: Annotated[frozenset[Repair], REPAIR] = HARD,
) -> WhatIfDocument:
    """What comes of it, in the order of the parameters: new hosts are there before others are emptied.

    Raises `UserError`.
    """
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
    found = course(state, tuple(host.id for host in down), tuple(starting))
    clusters = (
        *(host.cluster for host in (*maintenance, *down)),
        *(find(name, "host", now.hosts).cluster for name, _ in add_host),
        *(found.end.vm_by_id[one].cluster for one in starting),
    )
    change = Change(found.end, clusters, (), emptied, found.starts, found.stopped)
    return preview(now, change, repair=repair, deadline=deadline, fail_if=fail_if)


def _check(host: Host, in_question: bool) -> None:
    if not in_question:
        raise UserError(f"host {host.name} is {host.status} already")
