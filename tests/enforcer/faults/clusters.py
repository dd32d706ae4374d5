"""Draws small clusters with several violated hard rules that roomy hosts let repair, and some that hold."""

from __future__ import annotations

import random

from ovirt_placement.model import Snapshot
from tests.builders import APART, TOGETHER, cluster, group, host, label, snapshot, vm

_HOSTS = ("h1", "h2", "h3")
#: A group that is made later: c2 is to part from the confined VM besides it, which cannot go.
LATE = {"name": "late", "vms_rule": APART, "vms": ["b1", "b2", "c2"]}


def drawn(seed: int) -> Snapshot:
    """The same for the same seed: two violated rules at the least, so that two migrations are needed.

    Every second cluster is so old that its labels are hard rules.
    """
    chance = random.Random(seed)
    old = seed % 2 == 1
    (one, other), (here, there), allowed = (chance.sample(_HOSTS, 2) for _ in range(3))
    confined = (
        label("confined", "b1 b2", f"{here} {there}", implicit=True)
        if old
        else group("confined", vms="b1 b2", hosts_rule=TOGETHER, hosts=f"{here} {there}")
    )
    return snapshot(
        cluster(compatibility="4.3" if old else "4.7"),
        *(host(name) for name in _HOSTS),
        # Two VMs of which one cannot be migrated, and that shall be together.
        *(vm("a1", one), vm("a2", other, migratable=False), group("a", TOGETHER, "a1 a2")),
        # Two VMs that shall be apart, on two hosts only; besides a pair that is apart and must stay so. The
        # larger one of that pair is the last that anybody would choose to move.
        *(vm("b1", here), vm("b2", here), group("b", APART, "b1 b2")),
        *(vm("c1", here), vm("c2", there, needs_mb=4096), group("c", APART, "c1 c2")),
        confined,
        # A VM that may run on two hosts only; on one of them, or not.
        vm("d1", chance.choice(_HOSTS)),
        group("d", vms="d1", hosts_rule=TOGETHER, hosts=" ".join(allowed)),
    )
