"""Clusters in numbers: hosts, VMs, violated rules, HA reservations; and the health of all in one word."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import product
from typing import Annotated

from ovirt_placement.answers.configured import summary
from ovirt_placement.answers.document import MOST_NAMES, Columns, listed, safe_word, typed, upgrade_text
from ovirt_placement.answers.proxy import NOT_THIS_USER, ProxyRecord
from ovirt_placement.answers.status import EnforcementRecord, degraded_by
from ovirt_placement.lookups import once_per_snapshot
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import (
    Named,
    NamedHost,
    NamedVm,
    UnmatchedName,
    be,
    counted,
    host_name,
    vm_name,
)
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.rules.catalogue import UNITS, Violation, find_violations
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.failover.check import check, judge_lost
from ovirt_placement.rules.failover.outcomes import Lost, is_lost

#: How much work the check of an HA reservation may take: enough for each host of 500 with 10,000 VMs.
_STEPS = 20_000
#: What families of rules are called.
FAMILIES = {
    "vm_affinity": "VM affinity",
    "host_affinity": "host affinity",
    "placement_rules": "placement rules",
}


class LostVm(Record, frozen=True, omit_defaults=False):
    """A highly available VM that crashed, is unknown, or is on a host that does not answer; until it runs."""

    vm: NamedVm
    status: str
    host: NamedHost | None
    host_status: str | None
    #: Where it could be started now; null where no host takes it, or where that is not known.
    home: NamedHost | None
    #: Whether a host takes it, together with all others that are lost; null where that is not known.
    could_start: Annotated[bool | None, From(lambda one, _: None if one.unjudged else one.home is not None)]
    sentence: Annotated[str, From(lambda one, snapshot: _lost_sentence(one, snapshot))]


def _lost_sentence(lost: Lost, snapshot: Snapshot) -> str:
    crashed = snapshot.vm_by_id[lost.vm].crashed
    what = "has crashed" if crashed else f"is {lost.status}"
    place = "" if lost.host is None else f" on {host_name(lost.host, snapshot)}, which is {lost.host_status}"
    if lost.home is not None:
        fate = f"could start on {host_name(lost.home, snapshot)}"
    else:
        fate = "whether a host takes it is not known" if lost.unjudged else "finds no host"
    return f"{vm_name(lost.vm, snapshot)} {what}{place}: {fate}"


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
        vms_running=sum(vm_runs(snapshot, vm) for vm in vms),
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
        lost=tuple(with_names(LostVm, one, snapshot) for one in lost),
        failures_survived=None if checked is None else checked.failures_survived,
        units=tuple(rule.name for rule in UNITS.values() if not rule.on_request and rule.enabled_in(cluster)),
        disabled_units=cluster.scheduling_policy.disabled if cluster.scheduling_policy else (),
        draining=tuple(Named(host.id, host.name) for host in hosts if host.id in snapshot.draining_hosts),
        upgrade=upgrade_text(cluster) if cluster.upgrade_mode else None,
    )


def vm_runs(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether it runs, as far as is known: not where its host does not answer."""
    return vm.host is not None and not is_lost(snapshot, vm)


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


def _ha_text(status: ClusterStatus) -> str:
    word = safe_word(status.ha_safe) if status.ha_reservation else "not reserved"
    lost = f", {len(status.lost)} lost" if status.lost else ""
    return f"{counted(status.vms_highly_available, 'VM')}, {word}{lost}"


def _violations_text(status: ClusterStatus) -> str:
    if not status.violations:
        return "none"
    lines = [f"{status.hard_violations} hard, {status.soft_violations} soft"]
    lines += [
        f"{FAMILIES.get(each.family, each.family)}: {each.hard} hard, {each.soft} soft"
        for each in status.violations
        if len(status.violations) > 1
    ]
    return "\n".join(lines)


# -- Health in one word, with the reasons: what is grave, and what is less.
class Health(StrEnum):
    """The worse of all that is known."""

    HEALTHY = "healthy"
    #: Hard rules are violated, or nothing repairs them for now.
    DEGRADED = "degraded"
    #: The engine does not answer, a command will not start, or HA VMs might not restart.
    UNHEALTHY = "unhealthy"


def judge(
    error: str | None,
    mistakes: Iterable[str],
    clusters: Iterable[ClusterStatus],
    enforcer: EnforcementRecord | None,
    proxy: ProxyRecord | None,
    rule_problems: int = 0,
    unmatched: Sequence[UnmatchedName] = (),
    vms: Sequence[Vm] = (),
) -> tuple[Health, tuple[str, ...]]:
    """The health, and all reasons for it, the worst first; `error` is why nothing newer is known.

    "Healthy" promises: the engine answers, every highly available VM that should run does, on a host that
    answers, all would restart where a reservation asks for that, no hard rule is violated, and nothing that
    is configured is in vain or rests.
    """
    known = tuple(clusters)
    grave = [
        *(() if error is None else (error,)),
        *(f"a command will not start: {mistake}" for mistake in mistakes),
        *(text for one in known for text in _grave(one, vms)),
    ]
    light = [text for one in known for text in _light(one)]
    if proxy is not None and proxy.error not in (None, NOT_THIS_USER):
        light.append("the proxy does not answer" if proxy.url else "the proxy's configuration cannot be read")
    light += () if enforcer is None else degraded_by(enforcer)
    if rule_problems:
        text = f"{rule_problems} mistakes are" if rule_problems > 1 else "a mistake is"
        light.append(f"{text} in placement rules (ovirt-placement rules check)")
    if others := [one for one in unmatched if not one.in_rule]:  # those of rules are mistakes in rules
        what = "a name matches" if len(others) == 1 else f"{len(others)} names match"
        light.append(f"{what} nothing: {summary(others)}")
    health = Health.UNHEALTHY if grave else Health.DEGRADED if light else Health.HEALTHY
    return health, (*grave, *light)


def _grave(status: ClusterStatus, vms: Sequence[Vm]) -> Iterator[str]:
    yield from _lost_text(status, vms)
    if status.disabled_units:
        disabled = disabled_text(status.disabled_units)
        yield f"cluster {status.cluster.name}: {disabled} (ovirt-placement doctor)"
    if status.ha_reservation and status.ha_safe is False and not status.lost:
        yield f"cluster {status.cluster.name}: HA VMs would not all restart (ovirt-placement ha-check)"


def _light(status: ClusterStatus) -> Iterator[str]:
    if number := status.hard_violations:
        yield f"cluster {status.cluster.name}: {number} hard rule{'s are' if number > 1 else ' is'} violated"
    if status.hard_violations and status.upgrade:
        yield f"cluster {status.cluster.name}: {status.upgrade}: nothing is migrated until that is over"
    if status.doubt:
        yield f"cluster {status.cluster.name}: no verdict, and nothing is planned: {status.doubt}"
    elif status.ha_reservation and status.ha_safe is None:
        moving = " while VMs are on their way (ovirt-placement ha-check)" if status.vms_on_their_way else ""
        yield f"cluster {status.cluster.name}: not all failures of hosts could be judged{moving}"


def disabled_text(units: Sequence[str]) -> str:
    """What it means that the engine has disabled units of a policy."""
    they = "it" if len(units) == 1 else "them"
    return f"the engine has disabled {', '.join(units)} of its policy, and places VMs without {they}"


def _lost_text(status: ClusterStatus, known: Sequence[Vm]) -> Iterator[str]:
    """Highly available VMs that do not run for certain, by whether a host would take them."""
    fates = {
        False: (" and finds no host", " and find no host"),
        True: (" and does not run yet", " and do not run yet"),
        None: (" and may find no host", " and may find no host"),
    }
    for is_down, (could_start, (single, several)) in product((True, False), fates.items()):
        lost = [
            vm for vm in status.lost if vm.could_start is could_start and (vm.status == "down") is is_down
        ]
        if not lost:
            continue
        vms = f"{counted(len(lost), 'highly available VM')} {be(len(lost))}"
        state = "down" if is_down else "not known to run"
        fate = "" if could_start and not is_down else several if len(lost) > 1 else single
        silent = sorted({f"{vm.host.name} is {vm.host_status}" for vm in lost if vm.host is not None})
        names = "; ".join([listed([vm.vm.name for vm in lost]), *silent[:MOST_NAMES]])
        hint = f"(ovirt-placement why {typed(lost[0].vm, known)})"
        yield f"cluster {status.cluster.name}: {vms} {state}{fate}: {names} {hint}"
