"""What the store remembers for the gates, as it was at one moment: gates themselves read no store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ovirt_placement.store.approvals import Approval
from ovirt_placement.store.intents import Intent
from ovirt_placement.store.pauses import Pause


@dataclass(frozen=True, slots=True)
class Remembered:
    """What gates know besides settings, snapshot and what is under way; ages are those of the reading."""

    #: Migrations whose end is known, the oldest first, as far back as `Gates.reach_seconds` says.
    history: tuple[Intent, ...] = ()
    #: Pauses that are in force.
    pauses: tuple[Pause, ...] = ()
    #: The approval of each cluster that has one.
    approvals: tuple[Approval, ...] = ()
    #: In how many cycles each rule was seen violated, the last among them, by its key
    #: (`gates.hold.rule_key`).
    violated_cycles: Mapping[str, int] = field(default_factory=dict)
    #: How many seconds ago somebody had migrations resumed, by cluster; the empty name is for all.
    resumed: Mapping[str, float] = field(default_factory=dict)
    #: Ids of VMs that bear the tag `exclude_tag`: snapshots have no tags of VMs.
    tagged_vms: frozenset[str] = frozenset()
    #: Correlation ids of the upgrades that are maintenance runs of ours.
    own_upgrades: frozenset[str] = frozenset()
