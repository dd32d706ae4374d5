"""Every rule once, which of its invariants a running cluster violates, and what hard ones ask of all VMs.

All readers of "the rules" ask here, and add none of their own. What hard rules ask stands by itself, as
forms, of VMs that run or not. All hosts of the cluster count as up then: the question is what can be
satisfied at all, and not what can today.
"""

from collections.abc import Callable, Collection, Iterator

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import HOST_STATISTICS, STORED, VM_DETAILS
from ovirt_placement.rules.affinity.constraints import bindings
from ovirt_placement.rules.elements.placement import Placement, SnapshotPlacement
from ovirt_placement.rules.elements.rule import Allowed, Constraint, Form, Rule, UnitKind
from ovirt_placement.rules.elements.verdict import unread
from ovirt_placement.rules.failover import admission
from ovirt_placement.rules.placement_keys.capacity import host_places
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.judgement import rounds_of, score, thresholds
from ovirt_placement.rules.placement_keys.keys import KeySettings, is_special, settings_of
from ovirt_placement.rules.placement_keys.units import (
    KEY_FILTER,
    compiled_keys,
    on_accepted_hosts,
    storage_is_local,
)
from ovirt_placement.rules.placement_rules.in_force import not_known_yet
from ovirt_placement.rules.placement_rules.units import hard_constraints
from ovirt_placement.rules.rule_list import ENGINES_OWN, LISTED, NO_UNITS, those_in_force

#: In the order in which they are asked and listed.
RULES: tuple[Rule, ...] = (*LISTED, admission.FILTER, admission.WEIGHT)

#: Those that we have a policy unit for, by the unit's name.
UNITS: dict[str, Rule] = {rule.name: rule for rule in RULES if rule.ours}


def in_force(cluster: Cluster, kind: UnitKind, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """The rules of a kind that count in a cluster, as far as its policy is known.

    Those that a policy must enable count where it does, or where their unit is among `also`.
    """
    return those_in_force(RULES, cluster, kind, also)


def filters_in_force(cluster: Cluster, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """All filters that a VM must pass in a cluster: the engine's own affinity filters stand next to ours."""
    return (*in_force(cluster, UnitKind.FILTER, also), *ENGINES_OWN)


#: Invariants that hang on the present answers of filters: what placement keys ask of VMs that run.
momentary_constraints: Callable[[Snapshot, str], Iterator[Constraint]] = on_accepted_hosts


def constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """All invariants of the rules of a cluster, hard and soft."""
    for rule in RULES:
        if rule.constraints is not None:
            yield from rule.constraints(snapshot, cluster_id)


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
        for constraint in constraints(snapshot, cluster_id)
        if (offenders := constraint.offenders(placement))
    )
    return tuple(sorted(found, key=_importance))


def find_unjudged(snapshot: Snapshot, cluster_id: str) -> tuple[str, ...]:
    """Why it is not known yet whether running VMs violate rules of a cluster: for each rule, or for all."""
    heeded = KEY_FILTER.enabled_in(snapshot.cluster_by_id[cluster_id])
    keys = unread(snapshot, VM_DETAILS, HOST_STATISTICS) if heeded else ()
    return (
        *not_known_yet(snapshot, cluster_id),
        *unread(snapshot, STORED),
        *(f"placement keys: {why}" for why in keys),
    )


def _violation(
    snapshot: Snapshot, constraint: Constraint, offenders: tuple[str, ...], placement: Placement
) -> Violation:
    up = {host.id for host in snapshot.hosts if host.up}
    locations = tuple(Location(vm, host, host in up) for vm, host in constraint.running(placement))
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
