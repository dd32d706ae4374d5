"""The hosts that may take a VM, from best to worst, with what each weight says."""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.scores import HostKeys, host_keys
from ovirt_placement.answers.sentences import Said, said
from ovirt_placement.answers.why import JudgedHost, judged_host
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import Named, named_cluster, named_host
from ovirt_placement.model.record import Record
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.listed import NO_UNITS
from ovirt_placement.rules.scheduling.ranking import Ranked, order


class UnitRank(Record, frozen=True, omit_defaults=False):
    """What one unit of ours says of a host: rank 0 is best."""

    unit: str
    rank: int
    reasons: tuple[Said, ...]


class RankedHost(Record, frozen=True, omit_defaults=False):
    """An accepted host, and the points that the engine's selector gives it: more is better."""

    host: Named
    points: int
    weights: tuple[UnitRank, ...]
    placement_keys: HostKeys | None


class WhereDocument(Document, frozen=True, kw_only=True, tag="where"):
    """The hosts that may take a VM, from best to worst, and those that may not."""

    vm: Named
    cluster: Named
    #: Where the VM runs now.
    host: Named | None
    hosts: tuple[RankedHost, ...]
    refused: tuple[JudgedHost, ...]


def where(snapshot: Snapshot, vm: Vm, also: Collection[str] = NO_UNITS) -> WhereDocument:
    """The hosts of a VM's cluster in order; the units of placement keys count if named in `also`, too."""
    found = order(snapshot, vm, also)
    return WhereDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        hosts=tuple(_ranked(host, snapshot) for host in found.hosts),
        refused=tuple(judged_host(host, snapshot) for host in found.refused),
    )


def _ranked(one: Ranked, snapshot: Snapshot) -> RankedHost:
    weights = (
        UnitRank(unit, weight.rank, tuple(said(reason, snapshot, [UNITS[unit]]) for reason in weight.reasons))
        for unit, weight in one.weights.items()
    )
    keys = None if one.keys is None else host_keys(one.keys)
    return RankedHost(named_host(one.host, snapshot), one.points, tuple(weights), keys)
