"""What a check of an HA reservation comes to, for sentences and metrics; all that a process needs for it."""

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from ovirt_placement.answers.configured import configured_domains
from ovirt_placement.answers.document import failing_text, listed
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import be, counted, host_name, vm_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.failover.check import HaCheck, check
from ovirt_placement.rules.failover.outcomes import Loss
from ovirt_service.errors import UserError

#: This many failing sets, and VMs of each, are named in a sentence.
_MOST_LOSSES: Final = 3
_MOST_VMS: Final = 10


class ReservationState(StrEnum):
    SAFE = "safe"
    UNSAFE = "unsafe"
    UNKNOWN = "unknown"
    #: It is watched no more: the cluster has no HA reservation, or is gone.
    OFF = "off"


class ReservationVerdict(Record, frozen=True, kw_only=True):
    """What is to be said of a cluster's HA reservation."""

    cluster: str
    #: The cluster's name.
    name: str
    state: ReservationState
    #: What sentences are made of.
    facts: Mapping[str, str]
    #: How many hosts may fail at once by the cluster's settings.
    failures: int = 0
    #: How many hosts may fail at once, whichever they are; at most as many as the cluster asks for.
    failures_survived: int = 0
    #: VMs that a best effort leaves without a home in the failure that is worst.
    vms_without_home: int = 0
    #: How long the check took.
    seconds: float = 0.0


def verdict_of(
    snapshot: Snapshot, cluster: str, of_hosts: HaCheck, of_domains: HaCheck | None, seconds: float
) -> ReservationVerdict:
    """Put together what is proven about hosts, and about whole failure domains where there are any."""
    checks = [of_hosts] if of_domains is None else [of_hosts, of_domains]
    losses = [loss for one in checks for loss in one.losses]
    stranded = [one.vm for one in of_hosts.lost if one.home is None and not one.unjudged]
    if losses or stranded:
        state, facts = ReservationState.UNSAFE, _loss_facts(snapshot, losses, stranded)
    elif all(one.safe for one in checks):
        domains = "" if of_domains is None else ", or any failure domain"
        failures = f"{counted(of_hosts.failures, 'host')}{domains}"
        words = f"all highly available VMs would be started again if any {failures} failed"
        state, facts = ReservationState.SAFE, {"state": words}
    else:
        state, facts = ReservationState.UNKNOWN, {"reason": _why_unknown(snapshot, of_hosts, checks)}
    name = snapshot.cluster_by_id[cluster].name
    return ReservationVerdict(
        cluster=cluster,
        name=name,
        state=state,
        facts={"cluster": name, **facts},
        failures=of_hosts.failures,
        failures_survived=of_hosts.failures_survived,
        vms_without_home=max([len(stranded), *(len(loss.unplaced) for loss in losses)]),
        seconds=seconds,
    )


def unknown(snapshot: Snapshot, cluster: str, reason: str) -> ReservationVerdict:
    """What is to be said where no check was made, or came to its end."""
    name = snapshot.cluster_by_id[cluster].name
    facts = {"cluster": name, "reason": reason}
    return ReservationVerdict(cluster=cluster, name=name, state=ReservationState.UNKNOWN, facts=facts)


def off(cluster: str, name: str) -> ReservationVerdict:
    facts = {"cluster": name, "state": "it is switched off, and watched no more"}
    return ReservationVerdict(cluster=cluster, name=name, state=ReservationState.OFF, facts=facts)


def _loss_facts(snapshot: Snapshot, losses: Sequence[Loss], stranded: Sequence[str]) -> dict[str, str]:
    """The worst first; the same text for the same state."""
    lost = [stranded, *(loss.unplaced for loss in losses)]
    worst = max(lost, key=lambda vms: (_memory_mb(vms, snapshot), len(vms)))
    texts = [f"no host takes, as things are, {_vms_text(stranded, snapshot)}"] if stranded else []
    ordered = sorted(losses, key=lambda loss: (-_memory_mb(loss.unplaced, snapshot), loss.hosts))
    texts += [_loss_text(loss, snapshot) for loss in ordered[:_MOST_LOSSES]]
    if (more := len(ordered) - _MOST_LOSSES) > 0:
        texts.append(f"and {more} more sets of hosts must not fail")
    return {
        "losses": "; ".join(texts),
        "vms_without_home": str(len(worst)),
        "missing_mb": str(_memory_mb(worst, snapshot)),
    }


def _why_unknown(snapshot: Snapshot, of_hosts: HaCheck, checks: Sequence[HaCheck]) -> str:
    if count := len(of_hosts.lost):
        vms = listed([vm_name(one.vm, snapshot) for one in of_hosts.lost[:_MOST_VMS]])
        return f"{counted(count, 'VM')} {be(count)} down: {vms}"
    if why := next((one.doubt for one in checks if one.doubt), ""):
        return why
    left = sum(one.unjudged + len(one.unknown) for one in checks)
    sets = f"{counted(left, 'set')} of failing hosts {be(left)}"
    return f"{sets} not judged; see: ovirt-placement ha-check"


def _loss_text(loss: Loss, snapshot: Snapshot) -> str:
    failing = failing_text(loss.domains, [host_name(host, snapshot) for host in loss.hosts])
    return f"if {failing} failed, no home would be left for {_vms_text(loss.unplaced, snapshot)}"


def _vms_text(vms: Sequence[str], snapshot: Snapshot) -> str:
    names = [vm_name(vm, snapshot) for vm in vms[:_MOST_VMS]]
    more = len(vms) - len(names)
    which = ", ".join(names) + (f" and {more} more" if more else "")
    return f"{counted(len(vms), 'VM')} ({_memory_mb(vms, snapshot)} MiB): {which}"


def _memory_mb(vms: Sequence[str], snapshot: Snapshot) -> int:
    return sum(required_mb(snapshot.vm_by_id[vm]) for vm in vms)


def judge_all(
    snapshot: Snapshot, clusters: Sequence[str], settings: HaSettings
) -> tuple[ReservationVerdict, ...]:
    return tuple(judge(snapshot, cluster, settings) for cluster in clusters)


def judge(snapshot: Snapshot, cluster: str, settings: HaSettings) -> ReservationVerdict:
    """Judge every set of as many hosts as the cluster is set to, and every failure domain by itself."""
    began = time.monotonic()
    try:
        domains = configured_domains(snapshot, settings)
    except UserError as error:
        return unknown(snapshot, cluster, str(error))
    of_hosts = check(snapshot, cluster)
    of_domains = check(snapshot, cluster, domains=domains) if domains else None
    return verdict_of(snapshot, cluster, of_hosts, of_domains, time.monotonic() - began)
