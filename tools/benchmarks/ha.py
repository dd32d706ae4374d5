"""The HA check: all pairs and triples of a large cluster, thousands of hosts at once, and who does the work.

Times are of the processor, of one process, unless they are said to be by the clock.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec
import psutil
from distributed import LocalCluster
from msgspec.structs import replace

from ovirt_enforcer.watchers.verdict import judge_all
from ovirt_placement.answers.ha_check_workers import spreading
from ovirt_placement.config import HaSettings
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.planning.ha_repair import failing
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.rules.assignment import Budget
from ovirt_placement.rules.failover.check import CheckQuestion, Spread
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Outcome, Proven
from ovirt_placement.rules.failover.starts import Starts
from ovirt_simulator.generate import Sizes, generate
from tools.benchmarks.world import of_records

LARGE = Sizes(hosts=500, vms=10_000, groups=1_000)
#: Most of its VMs are highly available.
DENSE = Sizes(hosts=500, vms=10_000, groups=1_000, ha=0.8)
DATA_CENTRE = Sizes(hosts=5_000, vms=30_000, groups=5_000, ha=1.0, broken=0.0)
#: Memory that is left to hand out where little is, and hosts that have all of it where few have.
LITTLE_SLACK = 0.1
FEW_HOSTS = 10
STEPS = 40_000_000
#: A tenth of the hosts must not fail where a reservation is restored, at the most.
MOST_LOST, HALVINGS = 0.1, 8

Answer = TypeVar("Answer")


def main() -> None:
    drawn = generate(LARGE, seed=1)
    dense = _with_slack(generate(DENSE, seed=1), LITTLE_SLACK)
    _sweeps(
        ("as drawn", drawn, 2),
        ("as drawn, placement keys", _keyed(drawn), 2),
        ("as drawn", drawn, 3),
        ("little slack", _with_slack(drawn, LITTLE_SLACK), 2),
        ("little slack", _with_slack(drawn, LITTLE_SLACK), 3),
        ("little slack on few hosts", _on_few_hosts(_with_slack(drawn, 0.02)), 2),
        ("little slack, most are HA", dense, 2),
    )
    _thousands()
    _workers(dense)
    _at_rest(drawn)
    _restoring(drawn)


def _sweeps(*cases: tuple[str, Snapshot, int]) -> None:
    rows = []
    for title, snapshot, failures in cases:
        found, seconds = _timed(lambda: _judge(snapshot, failures))  # noqa: B023 - called at once
        rows.append({"cluster": title, "failures": failures, **_reported(found), "s": f"{seconds:.1f}"})
    print(f"\nHA check: every set of this many of {LARGE.hosts} hosts with {LARGE.vms} VMs")
    print(of_records(rows))


def _reported(found: Proven) -> dict[str, object]:
    return {
        "survived": found.survived,
        "lost, smallest": len(found.losses),
        "unknown": len(found.unknown) + found.unjudged,
    }


def _thousands() -> None:
    rows = []
    drawn = generate(DATA_CENTRE, seed=1)
    hosts = [host.id for host in drawn.hosts]
    failed = tuple(sorted(random.Random(0).sample(hosts, len(hosts) // 20)))
    for slack in (0.4, 0.2, 0.1, 0.06):
        snapshot = _with_slack(drawn, slack)
        outcome, seconds = _timed(lambda: _judge_one(snapshot, failed))  # noqa: B023 - called at once
        row = {
            "left to hand out": f"{slack:.0%}",
            "hosts": len(hosts),
            "fail": len(failed),
            "VMs to start": sum(vm.host in failed for vm in snapshot.vms),
            "groups": len(snapshot.affinity_groups),
            "outcome": type(outcome).__name__.lower(),
            "s": f"{seconds:.1f}",
        }
        rows.append(row)
    print("\nHA check: every twentieth of thousands of hosts fails at once")
    print(of_records(rows))


def _workers(snapshot: Snapshot) -> None:
    rows: list[dict[str, str]] = []
    answers: list[Proven] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as dask,
        spreading(2, None) as processes,
        spreading(None, dask.scheduler_address) as cluster,
    ):
        for title, spread in (
            ("one process", None),
            ("2 processes (joblib)", processes),
            ("2 workers (Dask)", cluster),
        ):
            before = _processor_seconds()
            found, seconds = _timed(lambda: _judge(snapshot, 2, spread), time.perf_counter)  # noqa: B023
            after = _processor_seconds()
            answers.append(found)
            busiest = max(after[process] - before.get(process, 0.0) for process in after)
            row = {"who": title, "by the clock, s": f"{seconds:.1f}", "busiest process, s": f"{busiest:.1f}"}
            rows.append(row)
    if any(answer != answers[0] for answer in answers):
        raise RuntimeError("the answer depends on who examines")
    print("\nHA check: all pairs, little slack, most VMs are HA; by whom")
    print(of_records(rows))


def _processor_seconds() -> dict[int, float]:
    """What this process and those that it started have used, by their ids."""
    own = psutil.Process()
    used = {}
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used[process.pid] = times.user + times.system
    return used


def _judge(snapshot: Snapshot, failures: int, spread: Spread | None = None) -> Proven:
    question = CheckQuestion(snapshot, snapshot.clusters[0].id, False, STEPS)
    examiner = None if spread is None else spread(question)
    return judge_failures(snapshot, question.measure(), failures, STEPS, examiner=examiner)


def _judge_one(snapshot: Snapshot, failed: tuple[str, ...]) -> Outcome:
    return Starts(snapshot, snapshot.clusters[0].id).judge(failed, Budget(STEPS))


def _timed(
    work: Callable[[], Answer], clock: Callable[[], float] = time.process_time
) -> tuple[Answer, float]:
    began = clock()
    return work(), clock() - began


def _with_slack(snapshot: Snapshot, share: float) -> Snapshot:
    """The same with so much less to hand out on each host that this share of all memory is left."""
    kept = (
        share * sum(host.memory_mb for host in snapshot.hosts) / sum(host.free_mb for host in snapshot.hosts)
    )
    return replace(
        snapshot, hosts=tuple(replace(host, free_mb=int(host.free_mb * kept)) for host in snapshot.hosts)
    )


def _on_few_hosts(snapshot: Snapshot) -> Snapshot:
    """The same with all that is left on a few hosts, which all others reckon with."""
    every = len(snapshot.hosts) // FEW_HOSTS
    share = sum(host.free_mb for host in snapshot.hosts) // FEW_HOSTS
    hosts = (
        replace(host, free_mb=0 if number % every else share) for number, host in enumerate(snapshot.hosts)
    )
    return replace(snapshot, hosts=tuple(hosts))


def _keyed(snapshot: Snapshot) -> Snapshot:
    """The same with a policy that asks for placement keys."""
    policy = SchedulingPolicy(filters=("AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"))
    clusters = tuple(replace(cluster, scheduling_policy=policy) for cluster in snapshot.clusters)
    return replace(snapshot, clusters=clusters)


def _at_rest(snapshot: Snapshot) -> None:
    """Print what one check costs the loop, and what it costs the separate process."""
    rows = []
    for failures in (1, 2):
        state = _reserving(snapshot, failures)
        began = time.process_time()
        encoded = msgspec.msgpack.encode(state)
        written = time.process_time() - began
        began = time.process_time()
        judge_all(msgspec.msgpack.decode(encoded, type=Snapshot), [state.clusters[0].id], HaSettings())
        judged = time.process_time() - began
        rows.append(
            {
                "ha_failures": failures,
                "writing it down in the loop, ms": f"{1000 * written:.0f}",
                "check in a process, s": f"{judged:.2f}",
            }
        )
    print("\nHA watch: one check, as each interval makes one and each change")
    print(of_records(rows))


def _restoring(snapshot: Snapshot) -> None:
    """Print how long it takes to plan what restores a reservation that a few failures break."""
    state = _hardly_unsafe(_reserving(snapshot, 1))
    cluster = state.clusters[0].id
    lost = len(failing(state, cluster, ()).sets)
    began = time.process_time()
    plan = make_plan(state, cluster, options=PlanOptions(repair=frozenset(), reserve=True))
    row = {
        "hosts that must not fail": lost,
        "migrations": plan.migrations,
        "left": 0 if plan.reservation is None else len(plan.reservation.lost),
        "s": f"{time.process_time() - began:.1f}",
    }
    print("\nHA reservation restored")
    print(of_records([row]))


def _reserving(snapshot: Snapshot, failures: int) -> Snapshot:
    clusters = (replace(one, ha_reservation=True, ha_failures=failures) for one in snapshot.clusters)
    return replace(snapshot, clusters=tuple(clusters))


def _hardly_unsafe(snapshot: Snapshot) -> Snapshot:
    """With so much less memory free on each host that a few failures are not survived."""
    least, most, found = 0.0, 1.0, snapshot
    for _ in range(HALVINGS):
        share = (least + most) / 2
        tried = replace(
            snapshot, hosts=tuple(replace(one, free_mb=int(one.free_mb * share)) for one in snapshot.hosts)
        )
        lost = len(failing(tried, snapshot.clusters[0].id, ()).sets)
        least, most = (share, most) if lost else (least, share)
        if 0 < lost <= MOST_LOST * len(snapshot.hosts):
            return tried
        found = tried if lost else found
    return found
