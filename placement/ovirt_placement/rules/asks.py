"""What the hard rules of a cluster ask of all their VMs, running or not: each by itself, as forms.

All hosts of the cluster count as up: the question is what can be satisfied at all, and not what can today.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.blocks import bindings
from ovirt_placement.rules.elements.constraints import Allowed, Form
from ovirt_placement.rules.placement_keys.capacity import host_places
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.judgement import rounds_of, score, thresholds
from ovirt_placement.rules.placement_keys.keys import KeySettings, is_special, settings_of
from ovirt_placement.rules.placement_keys.units import KEY_FILTER, compiled_keys, storage_is_local
from ovirt_placement.rules.placement_rules.units import hard_constraints


def enduring_hosts(snapshot: Snapshot, vm: str, settings: KeySettings) -> frozenset[str] | None:
    """Room aside; None where keys have no say, or special ones, which change with what hosts run."""
    keys = compiled_keys(snapshot, vm)
    if storage_is_local(snapshot, snapshot.vm_by_id[vm].cluster) or any(map(is_special, keys.system)):
        return None
    table, to_exceed = host_table(snapshot, settings), thresholds(settings)
    system = score(keys.system.values(), table.lists.system, len(table.ids), compared_with=to_exceed)
    places = host_places(snapshot)
    rounds = rounds_of((system.parts[place] for place in places.values()), system.unit, to_exceed)
    return frozenset(host for host, number in zip(places, rounds, strict=True) if number is not None)


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
    groups = [
        Ask(one.group.id, one.vms, one.forms) for one in bindings(standing) if one.group.cluster == cluster
    ]
    rules = [
        Ask(one.groups[0], one.vms, (one.form,), of_rule=True)
        for one in hard_constraints(standing, cluster)
        if one.vms and one.form is not None
    ]
    named = dict.fromkeys(vm for one in (*groups, *rules) for vm in one.vms)
    return (*groups, *rules, *_of_keys(standing, cluster, named))


def _of_keys(snapshot: Snapshot, cluster: str, vms: Collection[str]) -> Iterator[Ask]:
    known = snapshot.cluster_by_id[cluster]
    if not KEY_FILTER.enabled_in(known):
        return
    settings = settings_of(known.scheduling_properties)
    hosts = frozenset(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()))
    for vm in vms:
        accepted = enduring_hosts(snapshot, vm, settings)
        if accepted is not None and not accepted >= hosts:
            yield Ask(vm, (vm,), (Allowed(accepted & hosts),), of_keys=True)
