"""Plans of large clusters: how long each strategy takes, and how many migrations beyond the bound."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_simulator.generate import Sizes, generate
from tools.stage import of_records

#: The last one is the size that counts; the others show how the time grows.
HOSTS = (125, 250, 500)
CEILINGS = (50, 100)
VMS_PER_HOST, GROUPS_PER_HOST, VIOLATED = 20, 2, 0.2
DEADLINE_SECONDS = {StrategyName.GREEDY: 5.0, StrategyName.OPTIMAL: 27.0, StrategyName.RANDOM: 5.0}
OPTIONS = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}), memory_headroom=0.1, cpu_headroom=0.1)


def main() -> None:
    print("\nplans of one cluster, all rules repaired, headroom 10 %")
    print(of_records([row for hosts in HOSTS for row in _rows(_groups(hosts))]))
    print("\nthe same where every fifth host has more vCPUs than a ceiling allows")
    print(of_records([row for hosts in CEILINGS for row in _rows(_ceilings(hosts))]))


def _groups(hosts: int) -> Snapshot:
    sizes = Sizes(hosts=hosts, vms=VMS_PER_HOST * hosts, groups=GROUPS_PER_HOST * hosts, broken=VIOLATED)
    return generate(sizes, seed=1)


def _ceilings(hosts: int) -> Snapshot:
    snapshot = generate(Sizes(hosts=hosts, vms=VMS_PER_HOST * hosts, groups=hosts, broken=0.0), seed=1)
    used = {host.id: 0 for host in snapshot.hosts}
    for vm in snapshot.vms:
        if vm.host is not None:
            used[vm.host] += vm.vcpus
    most, cluster = sorted(used.values())[len(used) * 4 // 5], snapshot.clusters[0].id
    ceiling = PlacementRule(name="", kind="capacity", cluster=cluster, hosts=(), most=most, counted="vcpus")
    rules = (replace(ceiling, name=f"ceiling-{host}", hosts=(host,)) for host in used)
    return replace(snapshot, placement_rules=tuple(rules))


def _rows(snapshot: Snapshot) -> Iterator[dict[str, str]]:
    (cluster,) = snapshot.clusters
    violated = sum(not goal.satisfied for goal in pose(snapshot, cluster.id, options=OPTIONS).goals)
    for name in StrategyName:
        if name is StrategyName.OPTIMAL and not catalogue.OPTIMAL_IS_THERE:
            continue
        began, worked = time.monotonic(), time.process_time()
        deadline, strategy = Deadline.after(DEADLINE_SECONDS[name]), catalogue.strategy(name)
        plan = make_plan(snapshot, cluster.id, options=OPTIONS, strategy=strategy, deadline=deadline)
        yield {
            "hosts": str(len(snapshot.hosts)),
            "VMs": str(len(snapshot.vms)),
            "violated": str(violated),
            "strategy": name,
            "s": f"{time.monotonic() - began:.2f}",
            "CPU s": f"{time.process_time() - worked:.2f}",
            "left violated": str(len(plan.remaining)),
            "migrations": str(plan.migrations),
            "at least": str(plan.at_least),
        }
