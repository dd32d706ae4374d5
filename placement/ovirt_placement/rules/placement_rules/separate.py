"""Set against set. Invariant: no host runs members of both sets; members of one set may share hosts.

A VM that is in both sets counts for the first. Source: BtrPlace's Split.
"""

from __future__ import annotations

from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.forms import AtMost
from ovirt_placement.rules.placement_rules.kind import PlacementKind, common
from ovirt_placement.rules.placement_rules.limited import Limited
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.reasons import ReasonKind

OTHER_SET_HERE = ReasonKind("other_set_here", "{group} keeps VM {vm} here and this VM apart", veto=True)


class Separate(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "apart from the other set"
    refusal: ClassVar[ReasonKind] = OTHER_SET_HERE


def _both(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*found.vms, *found.other_vms)))


def _make(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> Separate:
    first = frozenset(found.vms)
    limit = AtMost(1, {vm: "first" if vm in first else "second" for vm in vms})
    return Separate(vms=vms, limit=limit, **common(found))


KIND = PlacementKind(
    name="separate",
    summary="no host with VMs of both sets",
    needs=("vms", "other_vms"),
    concerned=_both,
    make=_make,
)
