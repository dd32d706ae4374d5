"""Adds to a plan what no planner knows: who holds repairs back now, and why targets are left out."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.plan import Plan, Remaining

#: This many targets are reported a rule: a large group may have a hundred.
_MOST: Final = 10


def with_held_back(
    plan: Plan,
    snapshot: Snapshot,
    spared: Mapping[str, str],
    left_out: Mapping[tuple[str, str], str],
    frozen: Container[str] = (),
) -> Plan:
    """The plan with more obstacles: groups that are `spared`, and VMs with hosts that are `left_out`.

    Of VMs that are held anyway targets say nothing.
    """
    if not spared and not left_out:
        return plan

    def obstacles(rule: Remaining) -> Iterator[Obstacle]:
        yield from (_held(spared[group], groups=(group,)) for group in rule.groups if group in spared)
        yield from rule.obstacles
        targets = (
            _held(f"{vm_name(vm, snapshot)}: {reason}", vms=(vm,), hosts=(host,))
            for (vm, host), reason in left_out.items()
            if vm in rule.vms and vm not in frozen
        )
        yield from islice(targets, _MOST)

    remaining = (replace(rule, obstacles=tuple(obstacles(rule))) for rule in plan.remaining)
    return replace(plan, remaining=tuple(remaining))


def _held(
    words: str, vms: tuple[str, ...] = (), hosts: tuple[str, ...] = (), groups: tuple[str, ...] = ()
) -> Obstacle:
    return Obstacle(ObstacleKind.HELD, vms, hosts, groups, words=words)
