"""Plans of large clusters: how long each strategy takes, how many migrations beyond the bound, how evenly."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.problem import Problem
from ovirt_simulator.generate import Sizes, generate
from tools.benchmarks.world import of_records

#: The last one is the size that counts; the others show how the time grows.
HOSTS = (125, 250, 500)
CEILINGS = (50, 100)
VMS_PER_HOST, GROUPS_PER_HOST, VIOLATED = 20, 2, 0.2
DEADLINE_SECONDS = {StrategyName.GREEDY: 5.0, StrategyName.OPTIMAL: 27.0, StrategyName.RANDOM: 5.0}
OPTIONS = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}), memory_headroom=0.1, cpu_headroom=0.1)


def main() -> None:
    names = [name for name in StrategyName if name is not StrategyName.OPTIMAL or catalogue.OPTIMAL_IS_THERE]
    rows = [row for hosts in HOSTS for row in _rows(_groups(hosts), names)]
    print("\nplans of one cluster, all rules repaired, headroom 10 %")
    print(of_records(rows))
    rows = [row for hosts in CEILINGS for row in _rows(_ceilings(hosts), names)]
    print("\nthe same where every fifth host has more vCPUs than a ceiling allows")
    print(of_records(rows))


def _groups(hosts: int) -> Snapshot:
    sizes = Sizes(hosts=hosts, vms=VMS_PER_HOST * hosts, groups=GROUPS_PER_HOST * hosts, broken=VIOLATED)
    return generate(sizes, seed=1)


def _ceilings(hosts: int) -> Snapshot:
    snapshot = generate(Sizes(hosts=hosts, vms=VMS_PER_HOST * hosts, groups=hosts, broken=0.0), seed=1)
    used = {host.id: 0 for host in snapshot.hosts}
    for vm in snapshot.vms:
        if vm.host is not None:
            used[vm.host] += vm.vcpus
    most = sorted(used.values())[len(used) * 4 // 5]
    rules = (
        PlacementRule(
            name=f"ceiling-{host}",
            kind="capacity",
            cluster=snapshot.clusters[0].id,
            hosts=(host,),
            most=most,
            counted="vcpus",
        )
        for host in used
    )
    return replace(snapshot, placement_rules=tuple(rules))


def _rows(snapshot: Snapshot, names: list[StrategyName]) -> Iterator[dict[str, str]]:
    (cluster,) = snapshot.clusters
    problem = pose(snapshot, cluster.id, options=OPTIONS)
    violated = sum(not goal.satisfied for goal in problem.goals)
    for name in names:
        plan, seconds, cpu_seconds = _planned(snapshot, cluster.id, name)
        yield {
            "hosts": str(len(snapshot.hosts)),
            "VMs": str(len(snapshot.vms)),
            "violated": str(violated),
            "strategy": name,
            "s": f"{seconds:.2f}",
            "CPU s": f"{cpu_seconds:.2f}",
            "left violated": str(len(plan.remaining)),
            "migrations": str(plan.migrations),
            "at least": str(plan.at_least),
            **_evenness(problem, plan),
        }


def _planned(snapshot: Snapshot, cluster: str, name: StrategyName) -> tuple[Plan, float, float]:
    began, worked = time.monotonic(), time.process_time()
    plan = make_plan(
        snapshot,
        cluster,
        options=OPTIONS,
        strategy=catalogue.strategy(name),
        deadline=Deadline.after(DEADLINE_SECONDS[name]),
    )
    return plan, time.monotonic() - began, time.process_time() - worked


def _evenness(problem: Problem, plan: Plan) -> dict[str, str]:
    """The largest rise of any host, as a multiple of the fair share: at least the largest VM that moves."""
    ends = {vm: step.target for step in plan.steps for vm in step.vms}
    found = {}
    for title, size in (("memory", problem.memory_mb), ("CPU", problem.cpu)):
        largest = _largest_rise(problem, ends, size)
        fair = max(sum(size[vm] for vm in ends) / len(problem.hosts), *(size[vm] for vm in ends), 1.0)
        found[f"{title}: largest rise"] = f"{largest:.0f}"
        found[f"{title}: fair shares"] = f"{largest / fair:.2f}"
    return found


def _largest_rise(problem: Problem, ends: Mapping[str, str], size: Mapping[str, float]) -> float:
    more = dict.fromkeys(problem.hosts, 0.0)
    for vm, target in ends.items():
        more[target] += size[vm]
        if problem.where[vm] in more:
            more[problem.where[vm]] -= size[vm]
    return max(more.values())
