"""Plans rolling maintenance of hosts of one cluster: the fewest rounds, then the fewest migrations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import msgspec

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.maintenance.best import best_course
from ovirt_placement.planning.maintenance.bounds import migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.course import Outcome
from ovirt_placement.planning.maintenance.data import MaintenanceOptions, MaintenancePlan
from ovirt_placement.planning.maintenance.further import further
from ovirt_placement.planning.maintenance.obstacles import blocked_host, shut_hosts
from ovirt_placement.planning.maintenance.relaxing import relaxations
from ovirt_placement.planning.maintenance.reserve import Reserve
from ovirt_placement.planning.maintenance.returning import way_back
from ovirt_placement.planning.maintenance.site import Site, known_hosts
from ovirt_placement.planning.maintenance.verification import Verified, verified
from ovirt_placement.rules.doubts import held

#: So often a plan is made again without a move that some rule refuses.
_MOST_REFUSALS = 20
#: The share of the time for the rounds; the rest is for what stands in the way of hosts that get none.
_ROUNDS_SHARE = 0.7
#: The share of the rest of the time for the way back.
_BACK_SHARE = 0.5
_DEFAULT_OPTIONS = MaintenanceOptions()


def plan_maintenance(
    snapshot: Snapshot,
    hosts: Collection[str],
    options: MaintenanceOptions = _DEFAULT_OPTIONS,
    deadline: Deadline = NEVER,
) -> MaintenancePlan:
    """The rounds in which hosts of one cluster can be maintained, and all migrations that this takes.

    Hosts are given as ids, at least one; all are of the cluster of the first. In every state on the way every
    hard rule is satisfied that is now, each migration passes all filters in force, and no more failures are
    lost than now, where the cluster reserves for its highly available VMs. Without a deadline the work is
    bounded, not the time; with one, a first course and its check may go on beyond it: nothing can be said
    without.
    """
    cluster = snapshot.host_by_id[next(iter(hosts))].cluster
    options = replace(options, frozen=held(snapshot, cluster) or options.frozen)
    whole = Site(snapshot, cluster, known_hosts(snapshot, cluster, hosts), options, options.refused)
    shut = shut_hosts(whole)
    site = replace(whole, asked=tuple(host for host in whole.asked if host not in shut))
    reserve = Reserve(snapshot, cluster, options.domains)
    site, outcome, found = _planned(site, reserve, deadline.within(_ROUNDS_SHARE))
    left = [host for host in site.asked if all(host not in one.hosts for one in found.rounds)]
    more = further(site, reserve, left, found.end, deadline)
    rounds = (*found.rounds, *more.rounds)
    migrations = sum(len(step.vms) for one in rounds for step in one.steps)
    # What rules refused on the way may only just have been refused: with it left out, nothing is proven.
    proven = outcome.proven and not found.refused and site.refused == options.refused and not more.rounds
    tried = dict(more.tried)
    back = way_back(site, reserve, more.end, deadline.within(_BACK_SHARE))
    plan = MaintenancePlan(
        cluster=cluster,
        at_once=options.at_once,
        rounds=rounds,
        blocked=(
            *shut.values(),
            *(
                blocked_host(site, reserve, host, tried.get(host), more.end)
                for host in left
                if all(host not in one.hosts for one in more.rounds)
            ),
        ),
        back=back.steps,
        back_seconds=back.seconds,
        kept=back.kept,
        rounds_at_least=len(rounds) if proven else min(rounds_at_least(site, reserve), len(rounds)),
        migrations_at_least=migrations if proven else min(migrations_at_least(site, len(rounds)), migrations),
        proven=proven,
    )
    if not options.explained or not plan.blocked:
        return plan

    def _again(state: Snapshot, asked: MaintenanceOptions, until: Deadline) -> MaintenancePlan:
        return plan_maintenance(state, hosts, asked, until)

    return msgspec.structs.replace(
        plan, relaxations=tuple(relaxations(snapshot, options, plan, _again, deadline))
    )


def _planned(site: Site, reserve: Reserve, deadline: Deadline) -> tuple[Site, Outcome, Verified]:
    """Courses until all rules let one pass; what they refuse is left out by the next.

    Once time is over, the rounds before what they refuse are the plan.
    """
    for _ in range(_MOST_REFUSALS):
        outcome = best_course(site, reserve, deadline)
        found = verified(site, outcome.waves)
        if found.refused <= site.refused or deadline.over:
            break
        site = replace(site, refused=site.refused | found.refused)
    return site, outcome, found
