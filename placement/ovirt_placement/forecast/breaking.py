"""Which rules running VMs violate after a change and not before, and the other way round."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.violations import find_violations

#: What a rule is known by from one state to the other: its half, its groups, whether it is hard; of placement
#: keys, the VM.
_Key = tuple[str, tuple[str, ...], bool]


class Violated(Record, frozen=True):
    """A rule, and the running VMs that violate it."""

    constraint: Constraint
    vms: tuple[str, ...]


class Difference(Record, frozen=True):
    """What becomes of rules."""

    #: Violated by VMs that did not violate it before.
    violated: tuple[Violated, ...]
    #: Violated no more.
    repaired: tuple[Violated, ...]
    #: Violated before and after by the same VMs, or fewer.
    as_before: tuple[Violated, ...]


def difference(before: Snapshot, after: Snapshot, cluster: str) -> Difference:
    """Compare two states of a cluster; VMs that their placement keys refuse where they run count, too."""
    old, new = _violated(before, cluster), _violated(after, cluster)
    worse = {key for key, one in new.items() if key not in old or not {*one.vms} <= {*old[key].vms}}
    return Difference(
        violated=tuple(one for key, one in new.items() if key in worse),
        repaired=tuple(one for key, one in old.items() if key not in new),
        as_before=tuple(one for key, one in new.items() if key not in worse),
    )


def _violated(snapshot: Snapshot, cluster: str) -> dict[_Key, Violated]:
    found: dict[_Key, Violated] = {}
    for violation in find_violations(snapshot, cluster):
        one = violation.constraint
        found[one.family, one.groups, one.hard] = Violated(one, violation.offenders)
    placement = SnapshotPlacement(snapshot)
    for refused in catalogue.momentary_constraints(snapshot, cluster):
        found[refused.family, refused.vms, refused.hard] = Violated(refused, refused.offenders(placement))
    return found
