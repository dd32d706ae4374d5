"""The answer of `ovirt-placement violations` as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.violations import sentence
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import (
    Named,
    named_cluster,
    named_group,
    named_groups,
    named_host,
    named_vm,
    named_vms,
)
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import Violation


class Place(Record, frozen=True, omit_defaults=False):
    """A running VM and its host."""

    vm: Named
    host: Named
    host_up: bool


class BrokenConstraint(Record, frozen=True, omit_defaults=False):
    """A rule that running VMs break."""

    #: The half of an affinity group that asks for it: `vm_affinity` or `host_affinity`.
    kind: str
    sentence: str
    cluster: Named
    positive: bool
    hard: bool
    priority: float
    #: The affinity groups, or the legacy label, that ask for it together.
    groups: tuple[Named, ...]
    #: Of them, those that are broken taken alone.
    broken: tuple[Named, ...]
    #: Every running member.
    locations: tuple[Place, ...]
    #: Members that stand wrong.
    offenders: tuple[Named, ...]


class ViolationsDocument(Document, frozen=True, kw_only=True, tag="violations"):
    """The rules that running VMs break."""

    clusters: tuple[Named, ...]
    violations: tuple[BrokenConstraint, ...]


def violations_document(found: Mapping[str, Iterable[Violation]], snapshot: Snapshot) -> ViolationsDocument:
    """Tell of the broken rules of each cluster, by its id."""
    return ViolationsDocument(
        clusters=tuple(named_cluster(cluster, snapshot) for cluster in found),
        violations=tuple(
            _broken(violation, cluster, snapshot) for cluster, broken in found.items() for violation in broken
        ),
    )


def _broken(violation: Violation, cluster: str, snapshot: Snapshot) -> BrokenConstraint:
    constraint = violation.constraint
    return BrokenConstraint(
        kind=constraint.family,
        sentence=sentence(violation, snapshot),
        cluster=named_cluster(cluster, snapshot),
        positive=constraint.positive,
        hard=constraint.hard,
        priority=constraint.priority,
        groups=named_groups(constraint.groups, snapshot),
        broken=tuple(named_group(group, snapshot) for group in violation.broken),
        locations=tuple(
            Place(named_vm(at.vm, snapshot), named_host(at.host, snapshot), at.host_up)
            for at in violation.locations
        ),
        offenders=named_vms(violation.offenders, snapshot),
    )
