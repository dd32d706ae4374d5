"""Adds to a plan what no planner knows: why rules are not repaired now, and why targets are left out."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.plan import Plan, Remaining

#: So many targets are told of a rule: a large group may have a hundred.
_MOST: Final = 10


def with_reasons(
    plan: Plan,
    snapshot: Snapshot,
    spared: Mapping[str, str],
    left_out: Mapping[tuple[str, str], str],
    frozen: Container[str] = (),
) -> Plan:
    """The plan with reasons: `spared` are groups that are not to be repaired, `left_out` VMs with hosts.

    Of VMs that are held anyway targets say nothing.
    """
    if not spared and not left_out:
        return plan

    def reasons(rule: Remaining) -> Iterator[str]:
        yield from (spared[group] for group in rule.groups if group in spared)
        yield from rule.because
        targets = (
            f"{vm_name(vm, snapshot)}: {reason}"
            for (vm, _), reason in left_out.items()
            if vm in rule.vms and vm not in frozen
        )
        yield from islice(targets, _MOST)

    remaining = (replace(rule, because=tuple(dict.fromkeys(reasons(rule)))) for rule in plan.remaining)
    return replace(plan, remaining=tuple(remaining))
