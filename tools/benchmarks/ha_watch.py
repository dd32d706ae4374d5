"""What the HA watch costs at rest, and how long migrations are planned that restore a reservation."""

from __future__ import annotations

import time

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.watchers.verdict import judge_all
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import ha_repair as failing
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from tools.benchmarks.tables import of_records

#: A tenth of the hosts must not fail then, at the most.
_MOST_LOST = 0.1
_HALVINGS = 8


def at_rest(snapshot: Snapshot) -> None:
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


def restoring(snapshot: Snapshot) -> None:
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
    for _ in range(_HALVINGS):
        share = (least + most) / 2
        tried = replace(
            snapshot, hosts=tuple(replace(one, free_mb=int(one.free_mb * share)) for one in snapshot.hosts)
        )
        lost = len(failing(tried, snapshot.clusters[0].id, ()).sets)
        least, most = (share, most) if lost else (least, share)
        if 0 < lost <= _MOST_LOST * len(snapshot.hosts):
            return tried
        found = tried if lost else found
    return found
