"""Which rules running VMs break after a change that they did not break before, and the other way round."""

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


class Broken(Record, frozen=True):
    """A rule, and the running VMs that break it."""

    constraint: Constraint
    vms: tuple[str, ...]


class Difference(Record, frozen=True):
    """What becomes of rules."""

    #: Broken by VMs that did not break it before.
    broken: tuple[Broken, ...]
    #: Broken no more.
    repaired: tuple[Broken, ...]
    #: Broken before and after by the same VMs, or fewer.
    as_before: tuple[Broken, ...]


def difference(before: Snapshot, after: Snapshot, cluster: str) -> Difference:
    """Compare two states of a cluster; VMs that their placement keys refuse where they run count, too."""
    old, new = _broken(before, cluster), _broken(after, cluster)
    worse = {key for key, one in new.items() if key not in old or not {*one.vms} <= {*old[key].vms}}
    return Difference(
        broken=tuple(one for key, one in new.items() if key in worse),
        repaired=tuple(one for key, one in old.items() if key not in new),
        as_before=tuple(one for key, one in new.items() if key not in worse),
    )


def _broken(snapshot: Snapshot, cluster: str) -> dict[_Key, Broken]:
    found: dict[_Key, Broken] = {}
    for violation in find_violations(snapshot, cluster):
        one = violation.constraint
        found[one.family, one.groups, one.hard] = Broken(one, violation.offenders)
    placement = SnapshotPlacement(snapshot)
    for refused in catalogue.momentary_constraints(snapshot, cluster):
        found[refused.family, refused.vms, refused.hard] = Broken(refused, refused.offenders(placement))
    return found
