"""Which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from ovirt_placement.answers.sentences import Said, said
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.catalogue import NO_UNITS, in_force
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.record import Record
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.rules.verdict import Request, Verdict, Weight


class HostAnswer(Record, frozen=True):
    """What all filters together say of one host."""

    host: str
    accepted: bool
    reasons: tuple[Said, ...]
    #: How far the host comes by placement keys, where their unit counts.
    keys: HostDecision | None = None


class WhyAnswer(Record, frozen=True):
    hosts: tuple[HostAnswer, ...]
    #: What is to be said of the VM wherever it runs.
    everywhere: tuple[Said, ...]
    #: Whether placement keys have a say.
    keyed: bool


def request_for(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host]) -> Request:
    """The question that the engine puts to every unit of the VM's cluster."""
    return Request(
        (vm.id,),
        tuple(host.id for host in hosts),
        parameters=snapshot.cluster_by_id[vm.cluster].scheduling_properties,
        as_engine=True,
    )


def judge(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], also: Collection[str] = NO_UNITS) -> WhyAnswer:
    """Ask all filters that count in the VM's cluster, and those named in `also`, about each host."""
    cluster, request = snapshot.cluster_by_id[vm.cluster], request_for(snapshot, vm, hosts)
    rules = in_force(cluster, UnitKind.FILTER, also)
    by_rule = [rule.filter(snapshot, request) for rule in rules if rule.filter is not None]
    keys = _keys(chain.from_iterable(by_rule)) or _keys(_weights_by_keys(snapshot, cluster, request, also))
    return WhyAnswer(
        tuple(
            _joined(snapshot, verdicts, keys.get(verdicts[0].host)) for verdicts in zip(*by_rule, strict=True)
        ),
        tuple(said(note, snapshot) for rule in rules for note in rule.notes(snapshot, vm.id)),
        bool(keys),
    )


def _keys(found: Iterable[Verdict | Weight]) -> dict[str, HostDecision]:
    """How far each host comes by placement keys, by its id, if the rule that was asked reckons with them."""
    return {one.host: one.details for one in found if isinstance(one.details, HostDecision)}


def _weights_by_keys(
    snapshot: Snapshot, cluster: Cluster, request: Request, also: Collection[str]
) -> Iterator[Weight]:
    """What the weight of placement keys says: of a policy that has no filter of them."""
    for rule in in_force(cluster, UnitKind.WEIGHT, also):
        if rule.on_request and rule.weight is not None:
            yield from rule.weight(snapshot, request)


def _joined(snapshot: Snapshot, verdicts: Sequence[Verdict], keys: HostDecision | None) -> HostAnswer:
    """What several rules say of the same host; a reason of two is told once."""
    reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
    return HostAnswer(
        verdicts[0].host,
        all(verdict.accepted for verdict in verdicts),
        tuple(said(reason, snapshot) for reason in reasons),
        keys,
    )
