"""Empties hosts of an instance of BtrPlace: `python -m tools.benchmarks.btrplace FILE`. No file is kept here.

The instances are those of btrplace/scheduler, bench/src/test/resources/wkld-tdsc (LGPL), such as
nr/r6/p5000/c100/1.gz. Hosts that are offline stay so, and so do VMs that do not run; emptied are those with
the lowest numbers of the others. `spread` becomes a hard group that keeps VMs apart, `among` one that keeps
them on the hosts of the part where they are. Of the two resources memory counts: no filter of the engine
limits the sum of what VMs use of CPUs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from tests.builders import APART, DISABLED, TOGETHER, Part, group, host, snapshot, vm

#: Of one unit of memory; VMs of 100 of them have room for what the engine adds.
UNIT_MB = 10
SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--hosts", type=int, default=250, help="how many are emptied; else 250")
    parser.add_argument("--at-once", type=int, help="how many are out at once; else all")
    args = parser.parse_args()
    state = read(args.file)
    emptied = [one.id for one in state.hosts if one.up][: args.hosts]
    affected = sum(len(state.vms_of_host.get(one, ())) for one in emptied)
    options = MaintenanceOptions(at_once=args.at_once or len(emptied))
    began = time.monotonic()
    plan = plan_maintenance(state, emptied, options, Deadline.after(SECONDS))
    print(
        f"{len(state.hosts)} hosts, {len(state.vms)} VMs, {len(state.affinity_groups)} groups:"
        f" {len(plan.hosts)} of {len(emptied)} hosts with {affected} VMs emptied in {len(plan.rounds)} rounds"
        f" (at least {plan.rounds_at_least}) by {plan.migrations} migrations (at least"
        f" {plan.migrations_at_least}), {'proven' if plan.proven else 'not proven'},"
        f" in {time.monotonic() - began:.1f} s"
    )


def read(file: Path) -> Snapshot:
    """An instance as the state of a cluster."""
    with gzip.open(file) as stream:
        instance = json.load(stream)
    return snapshot(*_parts(instance["model"], instance["constraints"]))


def _parts(model: dict[str, Any], constraints: list[dict[str, Any]]) -> Iterator[Part]:
    (memory,) = (view for view in model["views"] if view.get("rcId") == "memory")
    where: dict[int, str] = {}
    for name, content in model["mapping"]["onlineNodes"].items():
        running = content["runningVMs"]
        where |= dict.fromkeys(running, name)
        used = sum(memory["vms"][str(one)] for one in running)
        free = UNIT_MB * (memory["nodes"][name] - used)
        yield host(name, memory_mb=UNIT_MB * memory["nodes"][name], free_mb=free)
    for name in model["mapping"]["offlineNodes"]:
        yield host(str(name), status="maintenance")
    for one, name in where.items():
        yield vm(str(one), name, needs_mb=UNIT_MB * memory["vms"][str(one)])
    for number, one in enumerate(constraints):
        if one["id"] in {"spread", "among"}:
            yield _group(f"{one['id']}-{number}", one, where)


def _group(name: str, constraint: dict[str, Any], where: dict[int, str]) -> AffinityGroup:
    members = [one for one in constraint["vms"] if one in where]
    vms = " ".join(map(str, members))
    if constraint["id"] == "spread":
        return group(name, APART, vms)
    places = {where[one] for one in members}
    part = next((part for part in constraint["parts"] if places <= set(map(str, part))), [])
    return group(name, DISABLED, vms, hosts_rule=TOGETHER, hosts=" ".join(map(str, part)))


if __name__ == "__main__":
    main()
