"""How far a cluster is from being repaired: by trying every place for every VM, and by nobody's planner."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product

from tests.enforcer.safety.rules import HardRule

#: The host of each VM that runs, on a migration the one that it goes to.
Placement = Mapping[str, str]


def is_violated(rules: Sequence[HardRule], placement: Placement) -> bool:
    places = {vm: (host,) for vm, host in placement.items()}
    return any(rule.violated(places) for rule in rules)


def fewest_migrations(
    rules: Sequence[HardRule], placement: Placement, hosts: Collection[str], fixed: Collection[str]
) -> int | None:
    """How many migrations repair all rules at the least; None if nothing does.

    Hosts have room for every VM, so that no migration is needed but those of VMs which end elsewhere.
    """
    ruled = sorted({vm for rule in rules for vm in rule.vms} & placement.keys() - set(fixed))
    costs = (
        sum(placement[vm] != host for vm, host in zip(ruled, ends, strict=True))
        for ends in product(sorted(hosts), repeat=len(ruled))
        if not is_violated(rules, {**placement, **dict(zip(ruled, ends, strict=True))})
    )
    return min(costs, default=None)
