"""The engine's events: which are new, and what they report: what to read again, starts, crashes, targets.

Source of the codes: the engine's AuditLogType. An event whose code is not listed is believed to concern the
VM and the host that it names: one reading too many is cheap, one too few is a wrong decision.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine.events import (
    CANCELLED,
    DONE,
    FAILED,
    START_FAILED,
    STARTED,
    TRIES_ANOTHER_HOST,
    VM_STARTED,
    EngineEvent,
    EventCode,
    codes,
)
from ovirt_placement.engine.vms import NO_DETAILS, Detail
from ovirt_placement.inventory.service.schedule import Effect, Subject, SubjectKind
from ovirt_placement.model import Host, Vm

#: An event may appear so much later than one with a higher id; what appears later still is left to the
#: reconciliation.
LATEST_SECONDS = 5.0


class FeedInterrupted(Exception):
    """Events were missed, or the engine has not the history any more that it had: all must be read again."""


class Feed:
    """Follows the event log from a first page on.

    Each page is asked for from `after` on, which lies a little before the last id, so that it must hold at
    least one event that is known: if it does not, the log was replaced or more happened than a page holds.
    """

    def __init__(self, page: Sequence[EngineEvent], now: float) -> None:
        """Start after this page, oldest event first: what is in it has happened before."""
        #: By id, when an event was seen, and what distinguishes it in a log that was restored from a backup.
        self._seen = {event.id: (now, event.code, event.time) for event in page}
        # By the engine's clock: what is that much older than the newest has no successors to come.
        old = [event.id for event in page if event.time <= page[-1].time - LATEST_SECONDS]
        self._anchor = max(old, default=0)

    @property
    def after(self) -> int:
        """Ask for events with higher ids than this."""
        return max(0, self._anchor - 1)

    @property
    def known(self) -> Set[int]:
        """Events that a page need not hold, wherever they are asked for: they were given out."""
        return self._seen.keys() - {self._anchor}

    def read_page(self, page: Sequence[EngineEvent], now: float) -> tuple[EngineEvent, ...]:
        """Return the events of a page that are new, lowest id first.

        Raises `FeedInterrupted` if the page does not follow on what is known.
        """
        if self._anchor and (self._anchor, *self._seen[self._anchor][1:]) not in {
            (event.id, event.code, event.time) for event in page
        }:
            raise FeedInterrupted(
                "the engine's events do not go on where they ended: its log was replaced, or too"
                " much happened at once"
            )
        new = tuple(event for event in page if event.id not in self._seen)
        self._seen.update((event.id, (now, event.code, event.time)) for event in new)
        # On to the highest id after which no lower one is to be expected any more.
        settled = [number for number, (seen, *_) in self._seen.items() if seen <= now - LATEST_SECONDS]
        self._anchor = max(self._anchor, *settled, 0)
        self._seen = {number: seen for number, seen in self._seen.items() if number >= self._anchor}
        return new

    def is_continued_by(self, page: Sequence[EngineEvent]) -> bool:
        """Whether the log that ends with this page may be the one that was followed, be it after a gap."""
        newest = max((event.id for event in page), default=0)
        same = all(self._seen[one.id][1:] == (one.code, one.time) for one in page if one.id in self._seen)
        return same and newest >= max(self._seen, default=0)


#: The engine has started: whatever happened while it was down was not logged. Of its own accord it writes the
#: second, where it enforces affinity groups; only ovirt-engine-notifier writes the first.
ENGINE_STARTED = codes("VDC_START AFFINITY_RULES_ENFORCEMENT_MANAGER_START")
#: These report what was found, or could not be done, and change nothing: among them all external events.
_WITHOUT_EFFECT = frozenset(
    code
    for code in EventCode
    if code.name.startswith(("EXTERNAL_", "USER_FAILED_TO_", "FAILED_TO_CONNECT_TO_", "CLUSTER_ALERT_HA_"))
    or "CONFLICT" in code.name
)
#: What was added, changed or removed, by a word in the names of codes.
_CHANGED = {
    "NETWORK": SubjectKind.NETWORKS,
    "VNIC_PROFILE": SubjectKind.NETWORKS,
    "AFFINITY_LABEL": SubjectKind.LABELS,
    "AFFINITY_GROUP": SubjectKind.CLUSTER,
    "USER_UPDATE_CLUSTER": SubjectKind.CLUSTER,
    "CLUSTER_POLICY": SubjectKind.POLICIES,
}
SUBJECTS: Mapping[int, SubjectKind] = {
    code: kind
    for word, kind in _CHANGED.items()
    for code in set(EventCode) - _WITHOUT_EFFECT
    if word in code.name
}
#: A tag has another name, or is gone: which VMs had it, they do not report.
TAGS_CHANGED = codes("USER_UPDATE_TAG USER_REMOVE_TAG")
#: A host has other tags: nothing but a reading of the tags of hosts shows which.
HOST_TAGS_CHANGED = codes("USER_ATTACH_TAG_TO_VDS USER_DETACH_VDS_FROM_TAG")
#: The dialogs that edit a VM or a host also put it into affinity groups and labels, which these alone report.
#: Source: the engine's UpdateVmCommand and UpdateVdsCommand.
MEMBERSHIPS_CHANGED = codes("USER_UPDATE_VM USER_UPDATE_VDS")
#: The host is lost, or back: what ran there changes with it.
WITH_ITS_VMS = codes("VDS_FAILURE VDS_DETECTED VDS_RECOVER VDS_MAINTENANCE VDS_SET_NONOPERATIONAL")

#: Names of VMs have no blanks (the engine's NO_SPECIAL_CHARACTERS_EXTRA_I18N), lists of them have commas.
_VMS = r"(?P<vms>\S+(, \S+)*)"
_OF_DISK = re.compile(rf" associated to the VMs {_VMS} (was|from)")
#: Events that refer to no VM: permissions granted and removed, tags attached and detached, disks removed.
_NAMES_VMS: Mapping[int, tuple[Detail, re.Pattern[str]]] = {
    EventCode.USER_ADD_PERMISSION: (Detail.OWNER, re.compile(rf" on VM {_VMS}, by ")),
    EventCode.USER_REMOVE_PERMISSION: (Detail.OWNER, re.compile(rf" from VM {_VMS} by ")),
    EventCode.USER_ATTACH_TAG_TO_VM: (Detail.OWNER, re.compile(rf" to VM\(s\) {_VMS} by ")),
    EventCode.USER_DETACH_VM_FROM_TAG: (Detail.OWNER, re.compile(rf" from VM\(s\) {_VMS} by ")),
    EventCode.USER_FINISHED_REMOVE_DISK_ATTACHED_TO_VMS: (Detail.DISKS, _OF_DISK),
    EventCode.USER_FINISHED_REMOVE_DISK_ATTACHED_TO_VMS_NO_DOMAIN: (Detail.DISKS, _OF_DISK),
    EventCode.USER_REMOVE_DISK_ATTACHED_TO_VMS_INITIATED: (Detail.DISKS, _OF_DISK),
}

#: The VM died, or its host did and was fenced.
_CRASHED = codes("VM_DOWN_ERROR VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE")
#: It runs again, or went down as a user wanted.
_OVER = VM_STARTED | codes("VM_DOWN")
DOWN = _CRASHED | codes("VM_DOWN USER_SUSPEND_VM_OK")
#: It could not be started or restarted, or is down again.
_ENDED = START_FAILED | codes("VM_DOWN VM_DOWN_ERROR USER_RUN_VM_AS_STATELESS_FINISHED_FAILURE")


def _has_status(status: str | None, found: Vm | Host | None) -> bool:
    return found is not None and found.status == status


#: Whether an event that names this host, if any, shows its effect on what is read of a VM; None is gone.
_EFFECTS: Mapping[frozenset[EventCode], Callable[[str | None, Any], bool]] = {
    codes("USER_RUN_VM USER_STARTED_VM"): lambda host, vm: (
        vm is not None and vm.host is not None and host in (None, vm.host) and vm.status != "wait_for_launch"
    ),
    DOWN: lambda _, vm: vm is None or vm.host is None,
    STARTED: lambda host, vm: vm is not None and (vm.status == "migrating" or host not in (None, vm.host)),
    DONE | codes("VM_STATUS_RESTORED"): lambda _, vm: _has_status("up", vm),
    FAILED | CANCELLED: lambda _, vm: vm is None or vm.status != "migrating",
}
_HOST_STATUS: Mapping[int, str] = {
    EventCode.VDS_FAILURE: "non_responsive",
    EventCode.VDS_DETECTED: "up",
    EventCode.VDS_MAINTENANCE: "maintenance",
    EventCode.VDS_SET_NONOPERATIONAL: "non_operational",
}


def reported_by(event: EngineEvent) -> tuple[Subject, Effect | None] | None:
    """Say what an event speaks of, if anything, and how its effect is recognised, if that is known.

    A `CLUSTER` without an id means all clusters.
    """
    if event.code in _WITHOUT_EFFECT:
        return None
    if (kind := SUBJECTS.get(event.code)) is not None:
        return Subject(kind, (event.cluster or "") if kind is SubjectKind.CLUSTER else ""), None
    if event.vm is not None:
        shows = next((shows for kinds, shows in _EFFECTS.items() if event.code in kinds), None)
        return Subject(SubjectKind.VM, event.vm), None if shows is None else partial(shows, event.host)
    if event.host is not None:
        status = _HOST_STATUS.get(event.code)
        return Subject(SubjectKind.HOST, event.host), None if status is None else partial(_has_status, status)
    return None if event.cluster is None else (Subject(SubjectKind.CLUSTER, event.cluster), None)


def vms_named(event: EngineEvent) -> tuple[Detail, tuple[str, ...]]:
    """Name the VMs whose details an event has changed to which it does not refer but in its text."""
    detail, pattern = _NAMES_VMS.get(event.code, (NO_DETAILS, None))
    found = None if pattern is None else pattern.search(event.description)
    return (NO_DETAILS, ()) if found is None else (detail, tuple(found["vms"].split(", ")))


#: Takes a VM, the host that it starts on, None for none, and the moment before which that was decided.
Heard = Callable[[str, str | None, float], object]


def reported_start(event: EngineEvent, began: float, heard: Heard) -> None:
    """Hand on what an event reports that the engine showed when it was asked at the moment `began`."""
    if event.vm is not None:
        if event.code in VM_STARTED and event.host is not None:
            heard(event.vm, event.host, began)
        elif event.code in _ENDED:
            heard(event.vm, None, began)


#: What the event of a migration's start says between the names of its source and its target, and next.
_BEFORE_THE_TARGET = ", Destination: "
_AFTER_THE_TARGET = (", User: ", ", Reason: ")
#: The VM may show that it migrates so much later than the event reports.
_SHOWN_AFTER_SECONDS = 5.0
#: How long the end of a migration is remembered, for events of its start that appear late.
_REMEMBERED_SECONDS = 60.0


class _Migration(NamedTuple):
    """The newest that events report of a VM's migration; without a host it has ended."""

    event: int
    host: str | None
    at: float
    #: Whether the VM was read as migrating since.
    shown: bool = False


class VmReports:
    """What only events report of VMs, by their ids: where they migrate to, and that they are down by a crash.

    Events may come in any order: what one with a higher id has reported stands.
    """

    def __init__(self) -> None:
        self._migrations: dict[str, _Migration] = {}
        #: The newest event that says anything of it, and whether that was a crash.
        self._crashes: dict[str, tuple[int, bool]] = {}

    def report(self, event: EngineEvent, vm: Vm | None, hosts: Iterable[Host], now: float) -> None:
        """Take what an event reports of a VM, given what is known of it and of all hosts."""
        if event.vm is None:
            return
        if event.code in _CRASHED | _OVER:
            reported = event.id, event.code in _CRASHED
            self._crashes[event.vm] = max(reported, self._crashes.get(event.vm, reported))
        known = self._migrations.get(event.vm)
        newer = vm is not None and (known is None or known.event < event.id)
        if vm is not None and newer and event.code in STARTED:
            target = destination(event.description, vm.name, {host.name: host.id for host in hosts})
            self._migrations[event.vm] = _Migration(event.id, target, now)
        elif newer and event.code in DONE | FAILED | CANCELLED | TRIES_ANOTHER_HOST:
            self._migrations[event.vm] = _Migration(event.id, None, now)

    def read(self, vm: Vm, began: float) -> None:
        """Take what a reading shows: a VM that is no longer migrating has no target.

        A reading that began before the event was heard shows nothing of what followed it.
        """
        known = self._migrations.get(vm.id)
        if known is None or began < known.at:
            return
        if vm.status == "migrating":
            self._migrations[vm.id] = known._replace(shown=True)
        elif known.host is not None:
            if known.shown or vm.host == known.host or began >= known.at + _SHOWN_AFTER_SECONDS:
                self._migrations[vm.id] = _Migration(known.event, None, began)
        elif began >= known.at + _REMEMBERED_SECONDS:
            del self._migrations[vm.id]

    def forget_crash(self, vm_id: str) -> None:
        """Forget a VM that is gone."""
        self._crashes.pop(vm_id, None)

    def over(self, vm: Vm) -> Vm:
        """The VM, as it was read, with what events report of it."""
        migration = self._migrations.get(vm.id)
        target = None if migration is None else migration.host
        crashed = vm.status == "down" and vm.host is None and self._crashes.get(vm.id, (0, False))[1]
        if (vm.migrating_to, vm.crashed) == (target, crashed):
            return vm
        return replace(vm, migrating_to=target, crashed=crashed)


def destination(description: str, vm_name: str, hosts: Mapping[str, str]) -> str | None:
    """Find the target in the text of event 62 or 67; None unless it can mean but one host.

    The text is "... (VM: v, Source: h1, Destination: h2, User: u)": names are taken as a whole, so that one
    with a comma, or with the text's own words in it, misleads no reader.
    """
    _, found, rest = description.partition(f"(VM: {vm_name}, Source: ")
    if not found:
        return None
    meant = {
        identity
        for source in hosts
        if rest.startswith(source) and rest.startswith(_BEFORE_THE_TARGET, len(source))
        for name, identity in hosts.items()
        if rest.startswith(name, target := len(source) + len(_BEFORE_THE_TARGET))
        and rest.startswith(_AFTER_THE_TARGET, target + len(name))
    }
    return meant.pop() if len(meant) == 1 else None
