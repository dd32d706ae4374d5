"""The answer of `ovirt-placement conflicts` as data."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.answers.conflicts import MEANINGS, ConflictsAnswer
from ovirt_placement.answers.document import Document
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_groups, named_hosts, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType
from ovirt_placement.rules.affinity.feasibility import Contradiction


class ConflictFound(Record, frozen=True, omit_defaults=False):
    """Groups that ask for opposite things."""

    #: The engine's name for it.
    kind: ConflictType
    sentence: str
    groups: tuple[Named, ...]
    vms: tuple[Named, ...]
    hosts: tuple[Named, ...]
    #: Of the VMs, those that a negative group keeps apart.
    negative_vms: tuple[Named, ...]
    #: Whether the engine would save the groups nevertheless, with a warning.
    savable: bool


class ContradictionFound(Record, frozen=True, omit_defaults=False):
    """Hard groups that cannot hold together."""

    groups: tuple[Named, ...]
    vms: tuple[Named, ...]
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool


class ClusterConflicts(Record, frozen=True, omit_defaults=False):
    """What is wrong among the groups of one cluster."""

    cluster: Named
    #: Whether all hard groups that were asked for can hold together; null if that is not known.
    feasible: bool | None
    conflicts: tuple[ConflictFound, ...]
    contradictions: tuple[ContradictionFound, ...]
    #: Sets of groups for which the work budget ended before an answer.
    unknown: tuple[tuple[Named, ...], ...]


class ConflictsDocument(Document, frozen=True, kw_only=True, tag="conflicts"):
    """Affinity groups that ask for opposite things, or cannot all hold together."""

    clusters: tuple[ClusterConflicts, ...]


def conflicts_document(found: Iterable[ConflictsAnswer], snapshot: Snapshot) -> ConflictsDocument:
    return ConflictsDocument(clusters=tuple(_of_cluster(one, snapshot) for one in found))


def _of_cluster(one: ConflictsAnswer, snapshot: Snapshot) -> ClusterConflicts:
    return ClusterConflicts(
        cluster=named_cluster(one.cluster, snapshot),
        feasible=one.feasibility.feasible,
        conflicts=tuple(_conflict(each, snapshot) for each in one.conflicts),
        contradictions=tuple(_contradiction(each, snapshot) for each in one.feasibility.contradictions),
        unknown=tuple(named_groups(groups, snapshot) for groups in one.feasibility.unknown),
    )


def _conflict(one: Conflict, snapshot: Snapshot) -> ConflictFound:
    return ConflictFound(
        kind=one.type,
        sentence=MEANINGS[one.type],
        groups=named_groups(one.groups, snapshot),
        vms=named_vms(one.vms, snapshot),
        hosts=named_hosts(one.hosts, snapshot),
        negative_vms=named_vms(one.negative_vms, snapshot),
        savable=one.savable,
    )


def _contradiction(one: Contradiction, snapshot: Snapshot) -> ContradictionFound:
    return ContradictionFound(named_groups(one.groups, snapshot), named_vms(one.vms, snapshot), one.smallest)
