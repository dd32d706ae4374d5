"""Which rules a running cluster violates, and which VMs on which hosts violate them."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.placement import Placement, SnapshotPlacement


class Location(Record, frozen=True):
    """A running VM and its host.

    Of a host that is not up nobody knows what still runs there: wait for it, or for its VMs to be
    restarted, and send no VM towards it.
    """

    vm: str
    host: str
    host_up: bool


class Violation(Record, frozen=True):
    """A rule that the running VMs violate.

    Hard positive VM groups that share members stand as one violation with all their ids, since only
    together can they be repaired; any other has one. A legacy label stands with its own id.
    """

    constraint: Constraint
    #: Of its groups, those that are violated taken alone; none, if they are split through a VM that is down.
    violated: tuple[str, ...]
    #: Every running member, whether or not it should move.
    locations: tuple[Location, ...]
    #: Members that violate it: on a wrong host, besides a member to keep away from, or off the host
    #: that most members share.
    offenders: tuple[str, ...]

    @property
    def hard(self) -> bool:
        return self.constraint.hard

    @property
    def groups(self) -> tuple[str, ...]:
        return self.constraint.groups


def find_violations(snapshot: Snapshot, cluster_id: str) -> tuple[Violation, ...]:
    """All violated rules of a cluster: hard before soft, host rules before VM rules, then by priority.

    Only members that run in the group's own cluster count (docs/rules.md, E5), and where they run,
    not where they are going. A positive host rule that lists no host is no rule (H1). All else is
    the engine's `broken` flag, with VM groups that are hard and positive unified.
    """
    placement = SnapshotPlacement(snapshot)
    found = (
        _violation(snapshot, constraint, offenders, placement)
        for constraint in catalogue.constraints(snapshot, cluster_id)
        if (offenders := constraint.offenders(placement))
    )
    return tuple(sorted(found, key=_importance))


def _violation(
    snapshot: Snapshot, constraint: Constraint, offenders: tuple[str, ...], placement: Placement
) -> Violation:
    locations = tuple(Location(vm, host, _up(snapshot, host)) for vm, host in constraint.running(placement))
    return Violation(constraint, constraint.violated_groups(placement), locations, offenders)


def _importance(violation: Violation) -> tuple[object, ...]:
    """Hard rules have no priority among themselves: there only the size and the ids decide."""
    return (
        not violation.hard,
        violation.constraint.family != "host_affinity",
        0.0 if violation.hard else -violation.constraint.priority,
        -len(violation.locations),
        violation.groups,
    )


def _up(snapshot: Snapshot, host: str) -> bool:
    known = snapshot.host_by_id.get(host)
    return known is not None and known.up
