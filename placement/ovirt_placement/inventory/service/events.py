"""What the engine's events report: what is to be read again, starts, crashes, and targets of migrations.

Source of the codes: the engine's AuditLogType. An event whose code is not listed is believed to concern the
VM and the host that it names: one reading too many is cheap, one too few is a wrong decision.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.engine.events import (
    CANCELLED,
    DONE,
    FAILED,
    STARTED,
    VM_STARTED,
    EngineEvent,
    EventCode,
)
from ovirt_placement.engine.vms import NO_DETAILS, Detail
from ovirt_placement.inventory.service.schedule import Effect, Subject, SubjectKind
from ovirt_placement.model import Host, Vm

#: The engine has started: whatever happened while it was down was not logged. Of its own accord it writes the
#: second, where it enforces affinity groups; only ovirt-engine-notifier writes the first.
ENGINE_STARTED = frozenset({EventCode.VDC_START, EventCode.AFFINITY_RULES_ENFORCEMENT_MANAGER_START})

#: What was added, changed or removed: networks with vNIC profiles, labels, policies; affinity groups or the
#: cluster itself.
SUBJECTS: Mapping[int, SubjectKind] = {
    EventCode.NETWORK_ADD_NETWORK: SubjectKind.NETWORKS,
    EventCode.NETWORK_REMOVE_NETWORK: SubjectKind.NETWORKS,
    EventCode.NETWORK_UPDATE_NETWORK: SubjectKind.NETWORKS,
    EventCode.ADD_VNIC_PROFILE: SubjectKind.NETWORKS,
    EventCode.UPDATE_VNIC_PROFILE: SubjectKind.NETWORKS,
    EventCode.REMOVE_VNIC_PROFILE: SubjectKind.NETWORKS,
    EventCode.USER_ADDED_AFFINITY_LABEL: SubjectKind.LABELS,
    EventCode.USER_UPDATED_AFFINITY_LABEL: SubjectKind.LABELS,
    EventCode.USER_REMOVED_AFFINITY_LABEL: SubjectKind.LABELS,
    EventCode.USER_ADD_CLUSTER_POLICY: SubjectKind.POLICIES,
    EventCode.USER_UPDATE_CLUSTER_POLICY: SubjectKind.POLICIES,
    EventCode.USER_REMOVE_CLUSTER_POLICY: SubjectKind.POLICIES,
    EventCode.USER_ADDED_AFFINITY_GROUP: SubjectKind.CLUSTER,
    EventCode.USER_UPDATED_AFFINITY_GROUP: SubjectKind.CLUSTER,
    EventCode.USER_REMOVED_AFFINITY_GROUP: SubjectKind.CLUSTER,
    EventCode.USER_UPDATE_CLUSTER: SubjectKind.CLUSTER,
}
#: A tag has another name, or is gone: which VMs had it, they do not report.
TAGS_CHANGED = {EventCode.USER_UPDATE_TAG, EventCode.USER_REMOVE_TAG}
#: A host has other tags: nothing but a reading of the tags of hosts shows which.
HOST_TAGS_CHANGED = {EventCode.USER_ATTACH_TAG_TO_VDS, EventCode.USER_DETACH_VDS_FROM_TAG}
#: These report what somebody found or failed to do, and change nothing: among them all external events.
_WITHOUT_EFFECT = frozenset(
    code
    for code in EventCode
    if code.name.startswith(("EXTERNAL_", "USER_FAILED_TO_", "FAILED_TO_CONNECT_TO_", "CLUSTER_ALERT_HA_"))
    or "CONFLICT" in code.name
)
#: The host is lost, or back, or left: what ran there, or was on its way to it, changes with it. The engine
#: cancels migrations to a host that is deactivated, and logs nothing of that.
WITH_ITS_VMS = {
    EventCode.USER_VDS_MAINTENANCE,
    EventCode.USER_VDS_MAINTENANCE_WITHOUT_REASON,
    EventCode.VDS_FAILURE,
    EventCode.VDS_DETECTED,
    EventCode.VDS_RECOVER,
    EventCode.VDS_MAINTENANCE,
    EventCode.VDS_SET_NONOPERATIONAL,
}

#: Names of VMs have no blanks (the engine's NO_SPECIAL_CHARACTERS_EXTRA_I18N), lists of them have commas.
_VMS = r"(?P<vms>\S+(, \S+)*)"
_OF_DISK = re.compile(rf" associated to the VMs {_VMS} (was|from)")
_NOTHING = re.compile("(?!)")
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

_RUNS = {EventCode.USER_RUN_VM, EventCode.USER_STARTED_VM}
_UP_AGAIN = {EventCode.VM_STATUS_RESTORED}
DOWN = {
    EventCode.VM_DOWN,
    EventCode.VM_DOWN_ERROR,
    EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE,
    EventCode.USER_SUSPEND_VM_OK,
}
_HOST_STATUS: Mapping[int, str] = {
    EventCode.VDS_FAILURE: "non_responsive",
    EventCode.VDS_DETECTED: "up",
    EventCode.VDS_MAINTENANCE: "maintenance",
    EventCode.VDS_SET_NONOPERATIONAL: "non_operational",
}


@dataclass(frozen=True)
class Reported:
    """One subject of an event; the effect is None where there is none to recognise."""

    subject: Subject
    effect: Effect | None = None
    #: Whether all VMs of this host may have changed with it.
    with_vms: bool = False


def reported_by(event: EngineEvent) -> Iterator[Reported]:
    """Say what an event speaks of. A `CLUSTER` without an id means all clusters."""
    code = event.code
    if code in _WITHOUT_EFFECT:
        return
    if (kind := SUBJECTS.get(code)) is not None:
        yield Reported(Subject(kind, (event.cluster or "") if kind is SubjectKind.CLUSTER else ""))
    else:
        yield from _named_in(event)


def vms_named(event: EngineEvent) -> tuple[Detail, tuple[str, ...]]:
    """Name the VMs whose details an event has changed to which it does not refer but in its text."""
    detail, pattern = _NAMES_VMS.get(event.code, (NO_DETAILS, _NOTHING))
    found = pattern.search(event.description)
    return (NO_DETAILS, ()) if found is None else (detail, tuple(found["vms"].split(", ")))


def _named_in(event: EngineEvent) -> Iterator[Reported]:
    if event.vm is not None:
        yield Reported(Subject(SubjectKind.VM, event.vm), _effect_on_vm(event))
    elif event.host is not None:
        status = _HOST_STATUS.get(event.code)
        effect = None if status is None else _has_status(status)
        yield Reported(Subject(SubjectKind.HOST, event.host), effect, event.code in WITH_ITS_VMS)
    elif event.cluster is not None:
        yield Reported(Subject(SubjectKind.CLUSTER, event.cluster))


def _effect_on_vm(event: EngineEvent) -> Effect | None:
    """How an event's effect on a VM is recognised, which runs on no host where the VM is gone."""
    host, code = event.host, event.code
    if code in _RUNS:
        return lambda vm: (
            isinstance(vm, Vm)
            and vm.host is not None
            and host in (None, vm.host)
            and vm.status != "wait_for_launch"
        )
    if code in DOWN:
        return lambda vm: not isinstance(vm, Vm) or vm.host is None
    if code in STARTED:
        return lambda vm: isinstance(vm, Vm) and (vm.status == "migrating" or host not in (None, vm.host))
    if code in DONE | _UP_AGAIN:
        return _has_status("up")
    if code in FAILED | CANCELLED:
        return lambda vm: not isinstance(vm, Vm) or vm.status != "migrating"
    return None


def _has_status(status: str) -> Effect:
    return lambda found: isinstance(found, Vm | Host) and found.status == status


#: Takes a VM, the host that it starts on, None for none, and the moment before which that was decided.
Heard = Callable[[str, str | None, float], object]

#: The VM could not be started or restarted, or is down again. Source: the engine's AuditLogType.
_ENDED = frozenset(
    {
        EventCode.USER_FAILED_RUN_VM,
        EventCode.VM_DOWN,
        EventCode.USER_RUN_VM_AS_STATELESS_FINISHED_FAILURE,
        EventCode.VM_DOWN_ERROR,
        EventCode.USER_INITIATED_RUN_VM_FAILED,
        EventCode.VDS_INITIATED_RUN_VM_FAILED,
        EventCode.RUN_VM_FAILED,
    }
)


def reported_start(event: EngineEvent, began: float, heard: Heard) -> None:
    """Hand on what an event reports that the engine showed when it was asked at the moment `began`."""
    if event.vm is not None:
        if event.code in VM_STARTED and event.host is not None:
            heard(event.vm, event.host, began)
        elif event.code in _ENDED:
            heard(event.vm, None, began)


#: It died, or its host did and was fenced. Source: the engine's AuditLogType.
_CRASHED = frozenset({EventCode.VM_DOWN_ERROR, EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE})
#: It runs again, or went down because somebody wanted it.
_OVER = VM_STARTED | {EventCode.VM_DOWN}


class Crashes:
    """The VMs that are down since they crashed, as far as events reported it."""

    def __init__(self) -> None:
        #: By VM, the newest event that says anything of it, and whether that was a crash.
        self._newest: dict[str, tuple[int, bool]] = {}

    def report(self, event: EngineEvent) -> None:
        """Take what an event reports; in whatever order, what one with a higher id has reported stands."""
        if event.vm is None or event.code not in _CRASHED | _OVER:
            return
        known = self._newest.get(event.vm)
        if known is None or known[0] < event.id:
            self._newest[event.vm] = event.id, event.code in _CRASHED

    def forget(self, vm_id: str) -> None:
        """Forget a VM that is gone."""
        self._newest.pop(vm_id, None)

    def include(self, vm: Vm) -> bool:
        """Whether a VM, as it was read, is down since it crashed."""
        known = self._newest.get(vm.id)
        return vm.status == "down" and vm.host is None and known is not None and known[1]


#: The engine tried one target without success and looks for another.
_LOOKS_FOR_ANOTHER = EventCode.VM_MIGRATION_TRYING_RERUN
#: What the event of a migration's start says between the names of its source and its target, and next.
_BEFORE_THE_TARGET = ", Destination: "
_AFTER_THE_TARGET = (", User: ", ", Reason: ")
#: The VM may show that it migrates so much later than the event reports.
_SHOWN_AFTER_SECONDS = 5.0
#: How long the end of a migration is remembered, for events of its start that appear late.
_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True)
class _Known:
    """The newest that events report of a VM's migration; without a host it has ended."""

    event: int
    host: str | None
    at: float


class MigrationTargets:
    """The targets of migrations under way, by VM id, as far as events reported them."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        #: VMs that were read as migrating since their migration was reported.
        self._migrating: set[str] = set()

    def report(self, event: EngineEvent, vm_name: str, hosts: Mapping[str, str], now: float) -> None:
        """Take what an event reports; hosts are ids by name.

        Events may come in any order: what one with a higher id has reported stands.
        """
        if event.vm is None or event.code not in STARTED | DONE | FAILED | CANCELLED | {_LOOKS_FOR_ANOTHER}:
            return
        known = self._known.get(event.vm)
        if known is not None and known.event >= event.id:
            return
        host = destination(event.description, vm_name, hosts) if event.code in STARTED else None
        self._known[event.vm] = _Known(event.id, host, now)
        self._migrating.discard(event.vm)

    def read(self, vm: Vm, began: float) -> None:
        """Take what a reading shows: a VM that is no longer migrating has no target.

        A reading that began before the event was heard shows nothing of what followed it.
        """
        known = self._known.get(vm.id)
        if known is None or began < known.at:
            return
        if vm.status == "migrating":
            self._migrating.add(vm.id)
        elif known.host is not None and (
            vm.id in self._migrating or vm.host == known.host or began >= known.at + _SHOWN_AFTER_SECONDS
        ):
            self._known[vm.id] = _Known(known.event, None, began)
        elif known.host is None and began >= known.at + _REMEMBERED_SECONDS:
            del self._known[vm.id]
            self._migrating.discard(vm.id)

    def target_host(self, vm_id: str) -> str | None:
        """Return the host that the VM is on its way to; None if it is not, or that is not known."""
        known = self._known.get(vm_id)
        return None if known is None else known.host


def destination(description: str, vm_name: str, hosts: Mapping[str, str]) -> str | None:
    """Find the target in the text of event 62 or 67; None unless it can mean but one host.

    The text is "... (VM: v, Source: h1, Destination: h2, User: u)": names are taken as a whole, so that one
    with a comma, or with the text's own words in it, misleads nobody.
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
