"""Hosts that no course takes, one at a time: by the planner that makes room and gathers groups, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import Round
from ovirt_placement.planning.maintenance.leaving import Leaving, leaving
from ovirt_placement.planning.maintenance.reserve import Reserve, out
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.world import World

#: The share of the time that is left for one host.
_SHARE = 0.3


class Further(NamedTuple):
    """More rounds, the state after them, and for each host that is left what was tried for it."""

    rounds: tuple[Round, ...]
    end: Snapshot
    tried: tuple[tuple[str, Plan], ...]


def further(
    site: Site, reserve: Reserve, hosts: Sequence[str], state: Snapshot, deadline: Deadline
) -> Further:
    """Take hosts one at a time until none is left that can be emptied; those without a plan are left out."""
    rounds: list[Round] = []
    left = sorted(hosts, key=site.rank)
    while True:
        tried: list[tuple[str, Plan]] = []
        for host in left:
            if deadline.over:
                return Further(tuple(rounds), state, tuple(tried))
            plan = _emptying(site, host, state, deadline.within(_SHARE))
            after = _taken(site, reserve, host, plan, state)
            if after is not None:
                state = after
                rounds.append(_round(site, host, plan))
                left.remove(host)
                break
            tried.append((host, plan))
        else:
            return Further(tuple(rounds), state, tuple(tried))


def _emptying(site: Site, host: str, state: Snapshot, deadline: Deadline) -> Plan:
    """The plan that takes as many VMs off a host as can leave it; no rule that is violated is repaired."""
    vms = frozenset(site.stopped_on(host))
    asked = tuple(one for one in leaving(state, (host,)) if vms.isdisjoint(one.vms))
    options = PlanOptions(
        closed=frozenset({host}) | site.never,
        constraints=asked,
        spared=frozenset({*state.group_by_id, *state.label_by_id}),
    )
    return make_plan(
        state, site.cluster, site.options.frozen, refused=site.refused, options=options, deadline=deadline
    )


def _taken(site: Site, reserve: Reserve, host: str, plan: Plan, state: Snapshot) -> Snapshot | None:
    """The state after a round of one host; None if it is not empty, or too little would be survived."""
    if host in site.by_engine or any(one.family == Leaving.family for one in plan.remaining):
        return None
    for step in plan.steps:
        state = apply(state, step)
    if reserve.worse(out(state, {host}, site.stopped_on(host))) is not None:
        return None
    return World(state).activated(frozenset({host})).snapshot if site.returns(host) else state


def _round(site: Site, host: str, plan: Plan) -> Round:
    return Round(
        hosts=(host,),
        steps=plan.steps,
        stopped=site.stopped_on(host),
        migrating_seconds=plan.seconds,
        maintenance_seconds=site.options.host_seconds,
    )
