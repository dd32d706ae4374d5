"""What the hard rules of a cluster ask of all their VMs, running or not: each by itself, as forms.

All hosts of the cluster count as up: the question is what can be satisfied at all, and not what can today.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.blocks import Binding, bindings
from ovirt_placement.rules.forms import Allowed, AtMost, Form, Same
from ovirt_placement.rules.placement_keys import key_filter
from ovirt_placement.rules.placement_keys.enduring import enduring_hosts
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.placement_rules.rule_filter import hard_constraints


class Ask(Record, frozen=True):
    """What a group, a legacy label or a placement rule asks; or the operator's keys of a VM."""

    #: Of the group, label or rule; of the VM if `of_keys`.
    id: str
    vms: tuple[str, ...]
    forms: tuple[Form, ...]
    of_keys: bool = False
    of_rule: bool = False


def asks(snapshot: Snapshot, cluster: str) -> tuple[Ask, ...]:
    """Of groups and labels, then of placement rules, then of keys that shut hosts out."""
    hosts = tuple(replace(host, status="up") for host in snapshot.hosts)
    standing = replace(snapshot, hosts=hosts, draining_hosts=())
    groups = [_of_group(one) for one in bindings(standing) if one.group.cluster == cluster]
    rules = [
        Ask(one.groups[0], one.vms, (one.form,), of_rule=True)
        for one in hard_constraints(standing, cluster)
        if one.vms and one.form is not None
    ]
    named = dict.fromkeys(vm for one in (*groups, *rules) for vm in one.vms)
    return (*groups, *rules, *_of_keys(standing, cluster, named))


def _of_group(one: Binding) -> Ask:
    forms: list[Form] = []
    if one.together:
        forms.append(Same())
    if one.apart:
        forms.append(AtMost(1))
    if one.only is not None:
        forms.append(Allowed(one.only))
    if one.never:
        forms.append(Allowed(one.never, positive=False))
    return Ask(one.group.id, one.vms, tuple(forms))


def _of_keys(snapshot: Snapshot, cluster: str, vms: Collection[str]) -> Iterator[Ask]:
    known = snapshot.cluster_by_id[cluster]
    if not key_filter.RULE.enabled_in(known):
        return
    settings = settings_of(known.scheduling_properties)
    hosts = frozenset(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()))
    for vm in vms:
        accepted = enduring_hosts(snapshot, vm, settings)
        if accepted is not None and not accepted >= hosts:
            yield Ask(vm, (vm,), (Allowed(accepted & hosts),), of_keys=True)


def parts_of(asks: Sequence[Ask]) -> Iterator[tuple[Ask, ...]]:
    """Those that are tied through common VMs: what one part asks concerns no other."""
    of_vm: dict[str, list[int]] = {}
    for number, one in enumerate(asks):
        for vm in one.vms:
            of_vm.setdefault(vm, []).append(number)
    left = dict.fromkeys(range(len(asks)))
    while left:
        waiting, found = [next(iter(left))], []
        while waiting:
            number = waiting.pop()
            if number in left:
                del left[number]
                found.append(number)
                for vm in asks[number].vms:
                    waiting += of_vm.pop(vm, ())
        yield tuple(asks[number] for number in sorted(found))
