"""A cluster in numbers: hosts, VMs, violated rules, its HA reservation, and our units in its policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ovirt_placement.answers.document import safe_word, upgrade_text
from ovirt_placement.answers.ha.check import LostVm, lost_vm
from ovirt_placement.answers.question import Columns
from ovirt_placement.forecast.outages import survived_of
from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import Named, counted
from ovirt_placement.model.record import Record
from ovirt_placement.rules.catalogue import UNITS, Violation, find_violations
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.failover.check import HaCheck, check, judge_lost
from ovirt_placement.rules.failover.outcomes import is_lost

#: How much work the check of an HA reservation may take: enough for each host of 500 with 10,000 VMs.
_STEPS = 20_000
#: What families of rules are called.
FAMILIES = {
    "vm_affinity": "VM affinity",
    "host_affinity": "host affinity",
    "placement_rules": "placement rules",
}


class FamilyViolations(Record, frozen=True, omit_defaults=False):
    """How many rules of a family are violated."""

    family: str
    hard: int
    soft: int


class ClusterStatus(Record, frozen=True, omit_defaults=False):
    """A cluster in numbers."""

    cluster: Named
    hosts: int
    hosts_up: int
    vms: int
    vms_running: int
    #: Migrating, or chosen for a host a moment ago.
    vms_on_their_way: int
    vms_highly_available: int
    #: Of the hosts that are up, in MiB: what they have, and what may still be handed out.
    memory_mb: int
    memory_free_mb: int
    #: Used of all cores of these hosts, in percent; null where no host has reported it.
    cpu_percent: float | None
    groups: int
    hard_violations: int
    soft_violations: int
    #: The same by family of rules.
    violations: tuple[FamilyViolations, ...]
    #: Whether the HA reservation reserves anything, and is satisfied; null where it is not known.
    ha_reservation: bool
    ha_safe: bool | None
    #: Why nothing is said of it now, nor planned; empty as a rule.
    doubt: str
    #: Highly available VMs that do not run though they should: nothing is safe while there are any.
    lost: tuple[LostVm, ...]
    #: At least this many hosts may fail at once, whichever they are, up to what the reservation asks for;
    #: null where it asks for none.
    failures_survived: int | None
    #: Our units that the cluster's scheduling policy enables.
    units: tuple[str, ...]
    #: External units in that policy that the engine has disabled: VMs are placed without them.
    disabled_units: tuple[str, ...]
    #: Hosts that are marked as draining: no VM is placed there.
    draining: tuple[Named, ...]
    #: That the engine marks it as being upgraded, as a sentence: the enforcer migrates nothing there. Else
    #: null.
    upgrade: str | None


@once_per_snapshot
def cluster_status(snapshot: Snapshot, cluster_id: str) -> ClusterStatus:
    """Count what there is of a cluster, and judge its rules and its HA reservation."""
    cluster = snapshot.cluster_by_id[cluster_id]
    hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    violations = find_violations(snapshot, cluster.id)
    up = [host for host in hosts if host.up]
    checked = check(snapshot, cluster.id, None, _STEPS) if cluster.ha_reservation else None
    lost = judge_lost(snapshot, cluster.id, _STEPS) if checked is None else checked.lost
    return ClusterStatus(
        cluster=Named(cluster.id, cluster.name),
        hosts=len(hosts),
        hosts_up=len(up),
        vms=len(vms),
        vms_running=sum(vm.host is not None and not is_lost(snapshot, vm) for vm in vms),
        vms_on_their_way=sum(vm.status == "migrating" or vm.id in snapshot.pending_hosts for vm in vms),
        vms_highly_available=sum(vm.ha for vm in vms),
        memory_mb=sum(host.memory_mb for host in up),
        memory_free_mb=sum(max(0, host.free_mb) for host in up),
        cpu_percent=_cpu_percent(up),
        groups=sum(group.cluster == cluster.id for group in snapshot.affinity_groups),
        hard_violations=sum(violation.hard for violation in violations),
        soft_violations=sum(not violation.hard for violation in violations),
        violations=tuple(_by_family(violations)),
        ha_reservation=cluster.ha_reservation,
        doubt=doubt(snapshot, cluster.id),
        ha_safe=None if checked is None else checked.safe,
        lost=tuple(lost_vm(one, snapshot) for one in lost),
        failures_survived=None if checked is None else _survived(checked),
        units=tuple(rule.name for rule in UNITS.values() if not rule.on_request and rule.enabled_in(cluster)),
        disabled_units=cluster.scheduling_policy.disabled if cluster.scheduling_policy else (),
        draining=tuple(Named(host.id, host.name) for host in hosts if host.id in snapshot.draining_hosts),
        upgrade=upgrade_text(cluster) if cluster.upgrade_mode else None,
    )


def _survived(checked: HaCheck) -> int:
    return 0 if checked.lost else survived_of(checked, checked.failures).count


def _cpu_percent(hosts: Iterable[Host]) -> float | None:
    known = [(host.cpu_percent, host.cores) for host in hosts if host.cpu_percent is not None]
    cores = sum(cores for _, cores in known)
    return round(sum(percent * cores for percent, cores in known) / cores, 1) if cores else None


def _by_family(violations: Sequence[Violation]) -> Iterator[FamilyViolations]:
    for family in dict.fromkeys(one.constraint.family for one in violations):
        hard = [one.hard for one in violations if one.constraint.family == family]
        yield FamilyViolations(family, sum(hard), len(hard) - sum(hard))


# -- in words
CLUSTER_COLUMNS: Columns = {
    "cluster": lambda one: one.cluster.name,
    "hosts up": lambda one: f"{one.hosts_up} of {one.hosts}",
    "VMs running": lambda one: f"{one.vms_running} of {one.vms}",
    "on their way": lambda one: one.vms_on_their_way,
    "groups": lambda one: one.groups,
    "violated rules": lambda one: _violations_text(one),
    "HA": lambda one: _ha_text(one),
}


def _ha_text(one: ClusterStatus) -> str:
    word = safe_word(one.ha_safe) if one.ha_reservation else "not reserved"
    lost = f", {len(one.lost)} lost" if one.lost else ""
    return f"{counted(one.vms_highly_available, 'VM')}, {word}{lost}"


def _violations_text(one: ClusterStatus) -> str:
    """In sum, and by family."""
    if not one.violations:
        return "none"
    lines = [f"{one.hard_violations} hard, {one.soft_violations} soft"]
    lines += [
        f"{FAMILIES.get(each.family, each.family)}: {each.hard} hard, {each.soft} soft"
        for each in one.violations
        if len(one.violations) > 1
    ]
    return "\n".join(lines)
