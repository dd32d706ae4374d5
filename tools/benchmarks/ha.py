"""The HA check: all pairs and triples of a large cluster, thousands of hosts at once, and who does the work.

Times are of the processor, of one process, unless they are said to be by the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psutil
from distributed import LocalCluster
from msgspec.structs import replace

from ovirt_placement.answers.ha_check_workers import spreading
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.rules.assignment import Budget
from ovirt_placement.rules.failover.check import CheckQuestion, Spread
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Outcome, Proven
from ovirt_placement.rules.failover.starts import Starts
from ovirt_simulator.generate import Sizes, generate
from tools.benchmarks import ha_instances, ha_watch
from tools.benchmarks.tables import of_records

LARGE = Sizes(hosts=500, vms=10_000, groups=1_000)
#: Most of its VMs are highly available.
DENSE = Sizes(hosts=500, vms=10_000, groups=1_000, ha=0.8)
#: Memory that is left to hand out where little is, and hosts that have all of it where few have.
LITTLE_SLACK = 0.1
FEW_HOSTS = 10
STEPS = 40_000_000
#: How long BtrPlace takes for its instance nr6, as published.
BTRPLACE_SECONDS = 13.8

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
    ha_watch.at_rest(drawn)
    ha_watch.restoring(drawn)


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
    for fill in (0.6, 0.8, 0.9, 0.94):
        snapshot = ha_instances.data_centre(ha_instances.Sizes(fill=fill))
        failed = tuple(sorted(ha_instances.gone(snapshot)))
        outcome, seconds = _timed(lambda: _judge_one(snapshot, failed))  # noqa: B023 - called at once
        rows.append(
            {
                "handed out": f"{fill:.0%}",
                "hosts": len(snapshot.hosts),
                "fail": len(failed),
                "VMs to start": sum(vm.host in failed for vm in snapshot.vms),
                "groups": len(snapshot.affinity_groups),
                "outcome": type(outcome).__name__.lower(),
                "s": f"{seconds:.1f}",
                "of BtrPlace's time": f"{seconds / BTRPLACE_SECONDS:.0%}",
            }
        )
    print("\nHA check: hosts of a data centre like BtrPlace's nr6 (another machine) fail together")
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
