"""Large clusters: the HA check of all pairs and triples and of thousands of hosts, and how long plans take.

Times of the HA check are of the processor, of one process.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.outages import evacuate
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.reservation import failing
from ovirt_placement.planning.strategies import StrategyName
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.failover.check import CheckQuestion, Starts
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Proven
from ovirt_simulator.generate import Sizes, generate
from tools.stage import SIZES, records_table

#: Most of its VMs are highly available.
DENSE = Sizes(hosts=500, vms=10_000, groups=1_000, ha=0.8)
DATA_CENTRE = Sizes(hosts=5_000, vms=30_000, groups=5_000, ha=1.0, broken=0.0)
#: Memory that is left to hand out where little is, and hosts that have all of it where few have.
LITTLE_SLACK, FEW_HOSTS = 0.1, 10
STEPS = 40_000_000
#: A tenth of the hosts must not fail where a reservation is restored, at the most.
MOST_LOST, HALVINGS = 0.1, 8

Answer = TypeVar("Answer")


def show_failures() -> None:
    drawn = generate(SIZES, seed=1)
    little = _with_slack(drawn, LITTLE_SLACK)
    cases = (
        ("as drawn", drawn, 2),
        ("as drawn", drawn, 3),
        ("little slack", little, 2),
        ("little slack", little, 3),
        ("little slack on few hosts", _on_few_hosts(_with_slack(drawn, 0.02)), 2),
        ("little slack, most are HA", _with_slack(generate(DENSE, seed=1), LITTLE_SLACK), 2),
    )
    print(f"\nHA check: every set of this many of {SIZES.hosts} hosts with {SIZES.vms} VMs")
    print(records_table([_swept(*case) for case in cases]))
    print("\nHA check: every twentieth of thousands of hosts fails at once")
    large = generate(DATA_CENTRE, seed=1)
    print(records_table([_many_failed(large, slack) for slack in (0.4, 0.2, 0.1, 0.06)]))
    print("\nHA reservation restored")
    print(records_table([_restored(drawn)]))


def _timed(work: Callable[[], Answer]) -> tuple[Answer, str]:
    began = time.process_time()
    return work(), f"{time.process_time() - began:.1f}"


def _swept(title: str, snapshot: Snapshot, failures: int) -> dict[str, object]:
    def judge() -> Proven:
        question = CheckQuestion(snapshot, snapshot.clusters[0].id, False, STEPS)
        return judge_failures(snapshot, question.measure(), failures, STEPS)

    found, seconds = _timed(judge)
    return {
        "cluster": title,
        "failures": failures,
        "survived": found.survived,
        "lost, smallest": len(found.losses),
        "unknown": len(found.unknown) + found.unjudged,
        "s": seconds,
    }


def _many_failed(drawn: Snapshot, slack: float) -> dict[str, object]:
    hosts = [host.id for host in drawn.hosts]
    failed = tuple(sorted(random.Random(0).sample(hosts, len(hosts) // 20)))
    snapshot = _with_slack(drawn, slack)
    starts = Starts(snapshot, snapshot.clusters[0].id)
    outcome, seconds = _timed(lambda: starts.judge(failed, Budget(STEPS)))
    return {
        "left to hand out": f"{slack:.0%}",
        "hosts": len(hosts),
        "fail": len(failed),
        "VMs to start": sum(vm.host in failed for vm in snapshot.vms),
        "outcome": type(outcome).__name__.lower(),
        "s": seconds,
    }


def _scaled(snapshot: Snapshot, share: float) -> Snapshot:
    """The same with this share of what each host has to hand out."""
    hosts = (replace(host, free_mb=int(host.free_mb * share)) for host in snapshot.hosts)
    return replace(snapshot, hosts=tuple(hosts))


def _with_slack(snapshot: Snapshot, share: float) -> Snapshot:
    """The same with so much less to hand out on each host that this share of all memory is left."""
    memory, free = (sum(getattr(host, name) for host in snapshot.hosts) for name in ("memory_mb", "free_mb"))
    return _scaled(snapshot, share * memory / free)


def _on_few_hosts(snapshot: Snapshot) -> Snapshot:
    """The same with all that is left on a few hosts, which all others reckon with."""
    every = len(snapshot.hosts) // FEW_HOSTS
    share = sum(host.free_mb for host in snapshot.hosts) // FEW_HOSTS
    numbered = enumerate(snapshot.hosts)
    hosts = (replace(host, free_mb=0 if number % every else share) for number, host in numbered)
    return replace(snapshot, hosts=tuple(hosts))


def _restored(snapshot: Snapshot) -> dict[str, object]:
    """Plan what restores a reservation that a few failures break."""
    clusters = (replace(one, ha_reservation=True, ha_failures=1) for one in snapshot.clusters)
    state = _hardly_unsafe(replace(snapshot, clusters=tuple(clusters)))
    cluster, options = state.clusters[0].id, PlanOptions(repair=frozenset(), reserve=True)
    lost = len(failing(state, cluster, ()).losses)
    plan, seconds = _timed(lambda: make_plan(state, cluster, options=options))
    left = 0 if plan.reservation is None else len(plan.reservation.lost)
    return {"hosts that must not fail": lost, "migrations": plan.migrations, "left": left, "s": seconds}


def _hardly_unsafe(snapshot: Snapshot) -> Snapshot:
    """With so much less memory free on each host that a few failures are not survived."""
    least, most, found = 0.0, 1.0, snapshot
    for _ in range(HALVINGS):
        share = (least + most) / 2
        tried = _scaled(snapshot, share)
        lost = len(failing(tried, snapshot.clusters[0].id, ()).losses)
        least, most = (share, most) if lost else (least, share)
        if 0 < lost <= MOST_LOST * len(snapshot.hosts):
            return tried
        found = tried if lost else found
    return found


# -- plans of large clusters
#: The last one is the size that counts; the others show how the time grows.
HOSTS = (125, 250, 500)
CEILINGS = (50, 100)
VMS_PER_HOST, GROUPS_PER_HOST, VIOLATED = 20, 2, 0.2
DEADLINE_SECONDS = {StrategyName.GREEDY: 5.0, StrategyName.OPTIMAL: 27.0, StrategyName.RANDOM: 5.0}
EMPTYING_SECONDS = 21.0
OPTIONS = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}), memory_headroom=0.1, cpu_headroom=0.1)


def show_plans() -> None:
    print("\nplans of one cluster, all rules repaired, headroom 10 %")
    print(records_table([row for hosts in HOSTS for row in _rows(_groups(hosts))]))
    print("\nthe same where every fifth host has more vCPUs than a ceiling allows")
    print(records_table([row for hosts in CEILINGS for row in _rows(_ceilings(hosts))]))
    print("\nevery twentieth of thousands of hosts is emptied at once")
    print(records_table([_emptied(generate(DATA_CENTRE, seed=1))]))


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


def _emptied(snapshot: Snapshot) -> dict[str, object]:
    """As `what-if --maintenance` plans it."""
    chosen = random.Random(0).sample([host.id for host in snapshot.hosts], len(snapshot.hosts) // 20)
    began = time.monotonic()
    ((found,), _), seconds = _timed(lambda: evacuate(snapshot, chosen, Deadline.after(EMPTYING_SECONDS)))
    return {
        "hosts": len(snapshot.hosts),
        "emptied": len(chosen),
        "s": f"{time.monotonic() - began:.2f}",
        "CPU s": seconds,
        "VMs left": len(found.staying),
        "migrations": found.plan.migrations,
        "at least": found.plan.at_least,
    }


def _rows(snapshot: Snapshot) -> Iterator[dict[str, str]]:
    (cluster,) = snapshot.clusters
    violated = sum(not goal.satisfied for goal in pose(snapshot, cluster.id, options=OPTIONS).goals)
    for name in StrategyName:
        if name is StrategyName.OPTIMAL and not strategies.OPTIMAL_IS_THERE:
            continue
        began, worked = time.monotonic(), time.process_time()
        deadline, strategy = Deadline.after(DEADLINE_SECONDS[name]), strategies.strategy(name)
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
