"""The engine's events: what happens, one after another; how a migration of ours went; events that we add."""

import binascii
from collections.abc import Callable, Container
from enum import IntEnum
from typing import NamedTuple

import msgspec
from ovirtsdk4 import types

from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.requests import permitted, read_collection
from ovirt_service.text import unbroken


class EventCode(IntEnum):
    """What happened, as the engine's AuditLogType names it: the kinds that something of ours goes by."""

    VDC_START = 1
    VDS_FAILURE = 12
    VDS_DETECTED = 13
    VDS_RECOVER = 14
    VDS_MAINTENANCE = 15
    VDS_ACTIVATE = 16
    USER_RUN_VM = 32
    USER_STOP_VM = 33
    USER_UPDATE_VM = 35
    USER_PAUSE_VM = 39
    USER_RESUME_VM = 40
    USER_ADD_VDS = 42
    USER_UPDATE_VDS = 43
    USER_REMOVE_VDS = 44
    USER_FAILED_RUN_VM = 54
    VM_DOWN = 61
    VM_MIGRATION_START = 62
    VM_MIGRATION_DONE = 63
    VM_MIGRATION_ABORT = 64
    VM_MIGRATION_FAILED = 65
    VM_MIGRATION_START_SYSTEM_INITIATED = 67
    USER_RUN_VM_AS_STATELESS_FINISHED_FAILURE = 70
    USER_INITIATED_SHUTDOWN_VM = 73
    VM_DOWN_ERROR = 119
    VM_MIGRATION_TO_SERVER_FAILED = 120
    VM_MIGRATION_TRYING_RERUN = 128
    VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE = 140
    VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE = 143
    USER_INITIATED_RUN_VM_FAILED = 151
    USER_RUN_VM_ON_NON_DEFAULT_VDS = 152
    USER_STARTED_VM = 153
    VM_CANCEL_MIGRATION = 161
    VM_CANCEL_MIGRATION_FAILED = 162
    VM_STATUS_RESTORED = 163
    VM_MIGRATION_NO_VDS_TO_MIGRATE_TO = 166
    USER_UPDATE_TAG = 430
    USER_REMOVE_TAG = 434
    USER_ATTACH_TAG_TO_VM = 440
    USER_DETACH_VM_FROM_TAG = 446
    USER_ATTACH_TAG_TO_VDS = 442
    USER_DETACH_VDS_FROM_TAG = 444
    VDS_APPROVE = 498
    USER_SUSPEND_VM = 501
    USER_SUSPEND_VM_OK = 503
    VDS_INITIATED_RUN_VM = 506
    VDS_INITIATED_RUN_VM_FAILED = 507
    VDS_SET_NONOPERATIONAL = 517
    USER_UPDATE_CLUSTER = 811
    RUN_VM_FAILED = 818
    USER_ADD_PERMISSION = 850
    USER_REMOVE_PERMISSION = 852
    NETWORK_ADD_NETWORK = 942
    NETWORK_REMOVE_NETWORK = 944
    VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE_NO_DESTINATION_VDS = 1111
    NETWORK_UPDATE_NETWORK = 1114
    ADD_VNIC_PROFILE = 1122
    UPDATE_VNIC_PROFILE = 1124
    REMOVE_VNIC_PROFILE = 1126
    USER_FINISHED_REMOVE_DISK_ATTACHED_TO_VMS = 2042
    USER_FINISHED_REMOVE_DISK_ATTACHED_TO_VMS_NO_DOMAIN = 2043
    USER_REMOVE_DISK_ATTACHED_TO_VMS_INITIATED = 2044
    EXTERNAL_EVENT_NORMAL = 9801
    EXTERNAL_EVENT_WARNING = 9802
    EXTERNAL_EVENT_ERROR = 9803
    EXTERNAL_ALERT = 9804
    USER_ADD_CLUSTER_POLICY = 9910
    USER_UPDATE_CLUSTER_POLICY = 9912
    USER_REMOVE_CLUSTER_POLICY = 9914
    FAILED_TO_CONNECT_TO_SCHEDULER_PROXY = 9920
    CLUSTER_ALERT_HA_RESERVATION = 10300
    CLUSTER_ALERT_HA_RESERVATION_DOWN = 10301
    USER_ADDED_AFFINITY_GROUP = 10350
    USER_FAILED_TO_ADD_AFFINITY_GROUP = 10351
    USER_UPDATED_AFFINITY_GROUP = 10352
    USER_FAILED_TO_UPDATE_AFFINITY_GROUP = 10353
    USER_REMOVED_AFFINITY_GROUP = 10354
    USER_FAILED_TO_REMOVE_AFFINITY_GROUP = 10355
    VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY = 10356
    VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY = 10357
    VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY = 10358
    VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY = 10359
    NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS = 10360
    VM_TO_VM_AFFINITY_CONFLICTS = 10361
    USER_ADDED_AFFINITY_LABEL = 10380
    USER_FAILED_TO_ADD_AFFINITY_LABEL = 10381
    USER_UPDATED_AFFINITY_LABEL = 10382
    USER_FAILED_TO_UPDATE_AFFINITY_LABEL = 10383
    USER_REMOVED_AFFINITY_LABEL = 10384
    USER_FAILED_TO_REMOVE_AFFINITY_LABEL = 10385
    EXTERNAL_SCHEDULER_PLUGIN_ERROR = 10500
    EXTERNAL_SCHEDULER_ERROR = 10501
    AFFINITY_RULES_ENFORCEMENT_MANAGER_START = 10780


def codes(names: str) -> frozenset[EventCode]:
    """Those of these names."""
    return frozenset(EventCode[name] for name in names.split())


STARTED = codes("VM_MIGRATION_START VM_MIGRATION_START_SYSTEM_INITIATED")
DONE = codes("VM_MIGRATION_DONE")
FAILED = codes(
    "VM_MIGRATION_ABORT VM_MIGRATION_FAILED VM_MIGRATION_TO_SERVER_FAILED"
    " VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE"
    " VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE_NO_DESTINATION_VDS"
)
#: Of a migration that did not begin: what the engine would not have, or found no host for.
REFUSED = FAILED | codes("VM_MIGRATION_NO_VDS_TO_MIGRATE_TO")
#: Of a migration that had begun: it failed, and was not refused.
BROKE_OFF = codes("VM_MIGRATION_ABORT VM_MIGRATION_TO_SERVER_FAILED")
CANCELLED = codes("VM_CANCEL_MIGRATION")
#: The engine tried one target without success and looks for another.
TRIES_ANOTHER_HOST = codes("VM_MIGRATION_TRYING_RERUN")
MIGRATION_CODES = (
    STARTED | DONE | REFUSED | CANCELLED | TRIES_ANOTHER_HOST | codes("VM_CANCEL_MIGRATION_FAILED")
)
#: A VM started on a host, by a user's command or by the engine's own.
VM_STARTED = codes("USER_RUN_VM USER_RUN_VM_ON_NON_DEFAULT_VDS USER_STARTED_VM VDS_INITIATED_RUN_VM")
#: A VM that did not start, or could not be restarted.
START_FAILED = codes(
    "USER_FAILED_RUN_VM USER_INITIATED_RUN_VM_FAILED VDS_INITIATED_RUN_VM_FAILED RUN_VM_FAILED"
)

#: How many of the newest events are looked through where the engine's search finds nothing.
_NEWEST = 1000


class EngineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event; `vm`, `host` and `cluster` are ids and may be absent."""

    id: int
    code: int
    severity: str
    #: Seconds since the epoch, by the engine's clock.
    time: float
    description: str
    correlation_id: str | None
    vm: str | None
    host: str | None
    cluster: str | None


class LatestEvents(NamedTuple):
    """Events, oldest first, and how far back they were looked for."""

    events: tuple[EngineEvent, ...]
    #: Seconds since the epoch; what is older was cut off. None if nothing was.
    since: float | None


def read_events(
    connection: EngineConnection, *, after: int = 0, at_most: int, but: Container[int] = ()
) -> tuple[EngineEvent, ...]:
    """Read the newest events with higher ids than this, oldest first; those with some ids are left out."""
    query: dict[str, int] = {"from": after} if after > 0 else {}
    return tuple(sorted(_read(connection, but, **query, max=at_most), key=lambda event: event.id))


def find_migration_events(
    connection: EngineConnection, vm_id: str, correlation_id: str | None = None
) -> tuple[EngineEvent, ...]:
    """Find the migration events of a VM, perhaps those of a correlation id alone, oldest first.

    The engine answers a search that it cannot parse with an empty list, so nothing found is asked again
    of the newest thousand events.
    """
    one = "" if correlation_id is None else f"correlation_id={correlation_id} and "

    def fits(event: EngineEvent) -> bool:
        known = correlation_id in (None, event.correlation_id)
        return event.code in MIGRATION_CODES and known and vm_id == event.vm

    return _find_latest(connection, f"{one}_event_vm_id={vm_id}", fits).events


def find_kinds(connection: EngineConnection, codes: Container[int]) -> LatestEvents:
    """Find the latest thousand events with these codes; as above, where the engine's search finds nothing."""
    search = " or ".join(f"type={code}" for code in sorted(EventCode) if code in codes)
    return _find_latest(connection, search, lambda event: event.code in codes)


def _find_latest(
    connection: EngineConnection, search: str, fits: Callable[[EngineEvent], bool]
) -> LatestEvents:
    read = _read(connection, search=search, max=_NEWEST)
    if not any(map(fits, read)):
        read = _read(connection, max=_NEWEST)
    found = sorted(filter(fits, read), key=lambda event: event.id)
    return LatestEvents(tuple(found), min(event.time for event in read) if len(read) >= _NEWEST else None)


def _read(
    connection: EngineConnection, but: Container[int] = (), **query: str | int
) -> tuple[EngineEvent, ...]:
    def parse(content: bytes) -> tuple[EngineEvent, ...]:
        found = ((xml.whole(one.get("id", "0"), "an id"), one) for one in xml.elements(content, "event"))
        return tuple(_event(number, one) for number, one in found if number not in but)

    return read_collection(connection, "/events", parse, **query)


def _event(number: int, element: xml.Element) -> EngineEvent:
    moment = xml.moment(element.find("time"))
    return EngineEvent(
        id=number,
        code=xml.number(element.find("code")),
        severity=element.findtext("severity", "normal"),
        time=0.0 if moment is None else moment.timestamp(),
        description=unbroken(element.findtext("description", "")),
        correlation_id=element.findtext("correlation_id"),
        vm=xml.reference(element.find("vm")),
        host=xml.reference(element.find("host")),
        cluster=xml.reference(element.find("cluster")),
    )


#: By which the engine distinguishes our events from others'.
ORIGIN = "ovirt-placement"

_LARGEST_ID = 0x7FFFFFFF


def custom_id(*words: str) -> int:
    """Derive an event's number from what makes it the same event: the engine takes each only once, for ever.

    So words that name the day let the same event be reported again the next day, and not before.
    """
    return binascii.crc32("\0".join(words).encode()) & _LARGEST_ID


def add_event(
    connection: EngineConnection,
    *,
    number: int,
    severity: str,
    description: str,
    cluster: str | None = None,
    vm: str | None = None,
) -> bool:
    """Add an event; return whether it is new, false if the engine has one of this number already.

    It is shown with the cluster and the VM that it is about.
    """
    event = types.Event(
        origin=ORIGIN,
        custom_id=number,
        severity=types.LogSeverity(severity),
        description=description,
        cluster=None if cluster is None else types.Cluster(id=cluster),
        vm=None if vm is None else types.Vm(id=vm),
    )
    permit = "inject_external_events (role ExternalEventsCreator)"
    try:
        with permitted(connection, "add events", permit), connection.session("/events") as sdk:
            sdk.system_service().events_service().add(event)
    except EngineFault as fault:
        if fault.code == 400 and "custom id" in fault.fault.detail:
            return False
        raise
    return True
