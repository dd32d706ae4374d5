"""Draws tiny clusters in which rules of all families are violated, some of them against each other."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ovirt_placement.model import AffinityRule, Snapshot
from tests.builders import DISABLED, group, host, snapshot, vm

_SIZES_MB = (1024, 1024, 2048, 4096)


def drawn(seed: int, *, hosts: int = 4, vms: int = 6, groups: int = 4) -> Snapshot:
    """Up to this many hosts, VMs and groups."""
    dice = random.Random(seed)
    host_ids = [f"h{number}" for number in range(dice.randint(2, hosts))]
    vm_ids = [f"v{number}" for number in range(dice.randint(2, vms))]
    return snapshot(
        *(host(name, free_mb=dice.choice((0, 1024, 2048, 8192, 8192))) for name in host_ids),
        *(
            vm(
                name,
                dice.choice(host_ids),
                needs_mb=dice.choice(_SIZES_MB),
                usage_cpu_percent=None,
                migratable=dice.random() < 0.9,
            )
            for name in vm_ids
        ),
        *(_group(f"g{number}", vm_ids, host_ids, dice) for number in range(dice.randint(1, groups))),
    )


def _group(name: str, vms: Sequence[str], hosts: Sequence[str], dice: random.Random) -> object:
    members = " ".join(dice.sample(vms, dice.randint(2, min(4, len(vms)))))
    rule = AffinityRule(enabled=True, positive=dice.random() < 0.5, enforcing=dice.random() < 0.6)
    priority = dice.choice((1.0, 2.0, 5.0))
    if dice.random() < 0.3:
        listed = " ".join(dice.sample(hosts, dice.randint(1, len(hosts))))
        return group(name, DISABLED, members, hosts_rule=rule, hosts=listed, priority=priority)
    return group(name, rule, members, priority=priority)
