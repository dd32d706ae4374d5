"""What each event of the engine speaks of, and how to tell that its effect has come.

Source of the codes: the engine's AuditLogType. An event whose code is not listed is believed to concern the
VM and the host that it names: one reading too many is cheap, one too few is a wrong decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ovirt_placement.engine.reading.detail import NO_DETAILS, Detail
from ovirt_placement.engine.reading.events import CANCELLED, DONE, FAILED, STARTED, Event
from ovirt_placement.inventory.service.rereads import Effect, Found, Kind, Subject
from ovirt_placement.model import Host, Vm

#: The engine has started: whatever happened while it was down was not logged.
ENGINE_STARTED = 1

#: Networks and vNIC profiles were added, changed or removed.
_NETWORKS = {942, 944, 1114, 1122, 1124, 1126}
_LABELS = {10380, 10382, 10384}
_POLICIES = {9910, 9912, 9914}
#: Affinity groups were added, changed or removed; the cluster itself was changed.
_CLUSTER = {10350, 10352, 10354, 811}
#: A tag has another name, or is gone: which VMs had it, they do not tell.
TAGS_CHANGED = {430, 434}
#: These tell of what somebody found or failed to do, and change nothing: among them all external events.
_WITHOUT_EFFECT = {
    9801, 9802, 9803, 9804, 9920, 9921, 9922, 10300, 10301, 10351, 10353, 10355,
    10356, 10357, 10358, 10359, 10360, 10361, 10381, 10383, 10385,
}  # fmt: skip
#: The host is lost, or back, or left: what ran there changes with it.
_WITH_ITS_VMS = {12, 13, 14, 15, 517}

#: Names of VMs have no blanks (the engine's NO_SPECIAL_CHARACTERS_EXTRA_I18N), lists of them have commas.
_VMS = r"(?P<vms>\S+(, \S+)*)"
_OF_DISK = re.compile(rf" associated to the VMs {_VMS} (was|from)")
_NOTHING = re.compile("(?!)")
#: Events that refer to no VM: permissions granted and removed, tags attached and detached, disks removed.
_NAMES_VMS = {
    850: (Detail.OWNER, re.compile(rf" on VM {_VMS}, by ")),
    852: (Detail.OWNER, re.compile(rf" from VM {_VMS} by ")),
    440: (Detail.OWNER, re.compile(rf" to VM\(s\) {_VMS} by ")),
    446: (Detail.OWNER, re.compile(rf" from VM\(s\) {_VMS} by ")),
    2042: (Detail.DISKS, _OF_DISK),
    2043: (Detail.DISKS, _OF_DISK),
    2044: (Detail.DISKS, _OF_DISK),
}

_RUNS = {32, 153}
_UP_AGAIN = {163}
_DOWN = {61, 119, 143, 503}
_HOST_STATUS = {12: "non_responsive", 13: "up", 15: "maintenance", 517: "non_operational"}


@dataclass(frozen=True)
class Told:
    """One subject of an event; the effect is None where there is none to recognise."""

    subject: Subject
    effect: Effect | None = None
    #: Whether all VMs of this host may have changed with it.
    with_vms: bool = False


def told_by(event: Event) -> Iterator[Told]:
    """Say what an event speaks of. A `CLUSTER` without an id means all clusters."""
    code = event.code
    if code in _WITHOUT_EFFECT:
        return
    if code in _LABELS:
        yield Told(Subject(Kind.LABELS))
    elif code in _NETWORKS:
        yield Told(Subject(Kind.NETWORKS))
    elif code in _POLICIES:
        yield Told(Subject(Kind.POLICIES))
    elif code in _CLUSTER:
        yield Told(Subject(Kind.CLUSTER, event.cluster or ""))
    else:
        yield from _named_in(event)


def vms_named(event: Event) -> tuple[Detail, tuple[str, ...]]:
    """Name the VMs whose details an event has changed to which it does not refer but in its text."""
    detail, pattern = _NAMES_VMS.get(event.code, (NO_DETAILS, _NOTHING))
    found = pattern.search(event.description)
    return (NO_DETAILS, ()) if found is None else (detail, tuple(found["vms"].split(", ")))


def _named_in(event: Event) -> Iterator[Told]:
    if event.vm is not None:
        yield Told(Subject(Kind.VM, event.vm), _effect_on_vm(event))
    elif event.host is not None:
        status = _HOST_STATUS.get(event.code)
        effect = None if status is None else _has_status(status)
        yield Told(Subject(Kind.HOST, event.host), effect, event.code in _WITH_ITS_VMS)
    elif event.cluster is not None:
        yield Told(Subject(Kind.CLUSTER, event.cluster))


def _effect_on_vm(event: Event) -> Effect | None:
    if event.code in _RUNS:
        return _runs_on(event.host)
    if event.code in _DOWN:
        return _runs_nowhere
    if event.code in STARTED:
        return _has_left_or_leaves(event.host)
    if event.code in DONE | _UP_AGAIN:
        return _has_status("up")
    if event.code in FAILED | CANCELLED:
        return _is_not_migrating
    return None


def _runs_on(host: str | None) -> Effect:
    def shown(found: Found) -> bool:
        return (
            isinstance(found, Vm)
            and found.host is not None
            and host in (None, found.host)
            and found.status != "wait_for_launch"
        )

    return shown


def _has_left_or_leaves(source: str | None) -> Effect:
    def shown(found: Found) -> bool:
        return isinstance(found, Vm) and (found.status == "migrating" or source not in (None, found.host))

    return shown


def _has_status(status: str) -> Effect:
    def shown(found: Found) -> bool:
        return isinstance(found, Vm | Host) and found.status == status

    return shown


def _runs_nowhere(found: Found) -> bool:
    return not isinstance(found, Vm) or found.host is None


def _is_not_migrating(found: Found) -> bool:
    return not isinstance(found, Vm) or found.status != "migrating"
