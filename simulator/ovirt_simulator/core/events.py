"""What the engine records: its events with their codes, and the log of what it did, with who asked for it."""

import heapq
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_simulator.core.entities import (
    BLANK_TEMPLATE,
    Caller,
    Cluster,
    DataCenter,
    Event,
    Host,
    Job,
    Reference,
    Vm,
)
from ovirt_simulator.core.settings import Settings


class EventType(NamedTuple):
    """What every event of one type has in common."""

    number: int
    #: A format string over the names that the audit log puts in.
    text: str
    #: normal, warning, error or alert.
    severity: str = "normal"
    #: Within this time the same event is logged once.
    flood_seconds: int = 0


# fmt: off
class EventCode:
    """Every type of event, by the engine's name for it."""

    # Affinity groups and labels, and how they contradict each other.
    USER_ADDED_AFFINITY_GROUP = EventType(10350, "Affinity Group {group} was added. (User: {user})")
    USER_FAILED_TO_ADD_AFFINITY_GROUP = EventType(
        10351, "Failed to add Affinity Group {group}. (User: {user})", "error")
    USER_UPDATED_AFFINITY_GROUP = EventType(10352, "Affinity Group {group} was updated. (User: {user})")
    USER_FAILED_TO_UPDATE_AFFINITY_GROUP = EventType(
        10353, "Failed to update Affinity Group {group}. (User: {user})", "error")
    USER_REMOVED_AFFINITY_GROUP = EventType(10354, "Affinity Group {group} was removed. (User: {user})")
    VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY = EventType(10356, (
        "The affinity groups: {groups}, with hosts :{hosts} and VMs : {vms}, have VM to host conflicts"
        " between positive and negative enforcing affinity groups."), "error")
    VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY = EventType(10357, (
        "The affinity groups: {groups}, with hosts: {hosts} and VMs: {vms}, have VM to host conflicts"
        " between positive and negative affinity groups."), "warning")
    VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY = EventType(10358, (
        "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between VM to"
        " host affinity and VM to VM positive affinity."), "warning")
    VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY = EventType(10359, (
        "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between VM to"
        " host affinity and VM to VM negative affinity."), "warning")
    NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS = EventType(10360, (
        "The affinity groups: {groups}, with hosts : {hosts} and VMs : {vms} , have non intersecting"
        " positive hosts conflicts."), "warning")
    VM_TO_VM_AFFINITY_CONFLICTS = EventType(10361, (
        "The affinity groups: {groups}, with VMs: {vms} and negative VMs: {negative_vms}, have VM to VM"
        " conflicts between positive and negative affinity groups."), "error")
    USER_ADDED_AFFINITY_LABEL = EventType(10380, "Affinity Label {label} was added. (User: {user})")
    USER_UPDATED_AFFINITY_LABEL = EventType(10382, "Affinity Label {label} was updated. (User: {user})")
    USER_REMOVED_AFFINITY_LABEL = EventType(10384, "Affinity Label {label} was removed. (User: {user})")
    # Clusters, scheduling there, and what clients report of their own.
    USER_UPDATE_VM_CLUSTER_DEFAULT_HOST_CLEARED = EventType(
        250, "{vm} cluster was updated by {user}, Default host was reset to auto assign.")
    USER_ADD_CLUSTER = EventType(809, "Cluster {cluster} was added by {user}")
    USER_REMOVE_CLUSTER = EventType(813, "Host cluster {cluster} was removed by {user}")
    USER_UPDATE_CLUSTER = EventType(811, "Host cluster {cluster} was updated by {user}")
    NETWORK_ADD_VM_INTERFACE = EventType(932, "Interface {nic} (VirtIO) was added to VM {vm}. (User: {user})")
    SYSTEM_UPDATE_CLUSTER = EventType(835, "Host cluster {cluster} was updated by system")
    USER_START_CLUSTER_UPGRADE = EventType(
        892, "Successfully set upgrade running flag on Host cluster {cluster} by {user}")
    USER_START_CLUSTER_UPGRADE_FAILED = EventType(
        893, "Failed to set upgrade running flag on Host cluster {cluster} by {user}", "error")
    USER_FINISH_CLUSTER_UPGRADE = EventType(
        894, "Successfully cleared upgrade running flag on Host cluster {cluster} by (User: {user})")
    USER_UPDATE_CLUSTER_UPGRADE = EventType(
        896, "Successfully updated upgrade percent complete on Host cluster {cluster} by (User: {user})")
    EXTERNAL_EVENT_NORMAL = EventType(9801, "{text}")
    EXTERNAL_EVENT_WARNING = EventType(9802, "{text}", "warning")
    EXTERNAL_EVENT_ERROR = EventType(9803, "{text}", "error")
    EXTERNAL_ALERT = EventType(9804, "{text}", "alert")
    USER_ADD_CLUSTER_POLICY = EventType(9910, "Scheduling Policy {policy} was added. (User: {user})")
    USER_UPDATE_CLUSTER_POLICY = EventType(9912, "Scheduling Policy {policy} was updated. (User: {user})")
    USER_REMOVE_CLUSTER_POLICY = EventType(9914, "Scheduling Policy {policy} was removed. (User: {user})")
    FAILED_TO_CONNECT_TO_SCHEDULER_PROXY = EventType(9920, (
        "Failed to connect to external scheduler proxy. External filters, scoring functions and load"
        " balancing will not be performed."), "error", flood_seconds=60)
    EXTERNAL_SCHEDULER_PLUGIN_ERROR = EventType(10500, (
        "Running the external scheduler plugin '{plugin}' failed: '{error}'"), "error", flood_seconds=60)
    EXTERNAL_SCHEDULER_ERROR = EventType(
        10501, "Running the external scheduler failed: '{error}'", "error", flood_seconds=60)
    # Hosts: activated, in maintenance, lost and fenced.
    VDS_FAILURE = EventType(12, "Host {host} is non responsive.", "error")
    VDS_DETECTED = EventType(13, "Status of host {host} was set to {status}.")
    VDS_BROKER_COMMAND_FAILURE = EventType(
        10802, "VDSM {host} command Get Host Statistics failed: Broken pipe", "error")
    VDS_RECOVER = EventType(14, "Host {host} is rebooting.")
    VDS_MAINTENANCE = EventType(15, "Host {host} was switched to Maintenance Mode.")
    VDS_ACTIVATE = EventType(16, "Activation of host {host} initiated by {user}.")
    VDS_MAINTENANCE_FAILED = EventType(17, "Failed to switch Host {host} to Maintenance mode.", "error")
    VDS_INITIATED_RUN_VM = EventType(506, "Trying to restart VM {vm} on Host {host}")
    VDS_INITIATED_RUN_VM_FAILED = EventType(507, "Failed to restart VM {vm} on Host {host}", "error")
    SYSTEM_SSH_HOST_RESTART = EventType(197, "Host {host} was restarted using SSH by the engine.")
    USER_VDS_MAINTENANCE = EventType(
        600, "Host {host} was switched to Maintenance mode by {user} (Reason: {reason}).")
    USER_VDS_MAINTENANCE_WITHOUT_REASON = EventType(
        620, "Host {host} was switched to Maintenance mode by {user}.")
    HOST_UPGRADE_STARTED = EventType(840, "Host {host} upgrade was started (User: {user}).")
    HOST_UPGRADE_FAILED = EventType(841, "Failed to upgrade Host {host} (User: {user}). <UNKNOWN>.", "error")
    HOST_UPGRADE_FINISHED = EventType(842, "Host {host} upgrade was completed successfully.")
    HOST_UPDATES_ARE_AVAILABLE_WITH_PACKAGES = EventType(
        843, "Host {host} has available updates: {packages}.", flood_seconds=86400)
    HOST_AVAILABLE_UPDATES_STARTED = EventType(884, "Started to check for available updates on host {host}.")
    HOST_AVAILABLE_UPDATES_FINISHED = EventType(885, (
        "Check for available updates on host {host} was completed successfully with message '{message}'."))
    HOST_UPGRADE_FINISHED_AND_WILL_BE_REBOOTED = EventType(
        888, "Upgrade was successful and host {host} will be rebooted.")
    # VMs: started, stopped, migrated and changed.
    USER_RUN_VM = EventType(32, "VM {vm} started on Host {host}")
    USER_STOP_VM = EventType(33, "VM {vm} powered off by {user} (Host: {host}).")
    USER_ADD_VM = EventType(34, "VM {vm} was created by {user}.")
    USER_UPDATE_VM = EventType(35, "VM {vm} configuration was updated by {user}.")
    USER_FAILED_RUN_VM = EventType(54, "Failed to run VM {vm}{error} (User: {user}).", "error")
    VM_DOWN = EventType(61, "VM {vm} is down. {exit}")
    VM_MIGRATION_START = EventType(
        62, "Migration started (VM: {vm}, Source: {host}, Destination: {target}, User: {user}). ")
    VM_MIGRATION_DONE = EventType(63, (
        "Migration completed (VM: {vm}, Source: {source}, Destination: {host}, Duration: {seconds} seconds,"
        " Total: {seconds} seconds, Actual downtime: (N/A))"))
    VM_MIGRATION_ABORT = EventType(64, "Migration failed: {error} (VM: {vm}, Source: {host}).", "error")
    VM_MIGRATION_FAILED = EventType(65, "Migration failed{error} (VM: {vm}, Source: {host}).", "error")
    VM_MIGRATION_START_SYSTEM_INITIATED = EventType(67, (
        "Migration initiated by system (VM: {vm}, Source: {host}, Destination: {target}, Reason: {reason})."))
    USER_INITIATED_SHUTDOWN_VM = EventType(73, "VM shutdown initiated by {user} on VM {vm} (Host: {host}).")
    USER_STOP_SUSPENDED_VM = EventType(111, "Suspended VM {vm} has had its save state cleared by {user}.")
    USER_REMOVE_VM_FINISHED = EventType(113, "VM {vm} was successfully removed by {user}.")
    VM_DOWN_ERROR = EventType(119, "VM {vm} is down with error. Exit message: {exit}.", "error")
    VM_MIGRATION_TO_SERVER_FAILED = EventType(
        120, "Migration failed{error} (VM: {vm}, Source: {host}, Destination: {target}).", "error")
    VM_MIGRATION_TRYING_RERUN = EventType(128, (
        "Failed to migrate VM {vm} to Host {target}{error}. Trying to migrate to another Host."), "warning")
    VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE = EventType(140, (
        "Migration failed{error} while Host is in 'preparing for maintenance' state.\n  Consider manual"
        " intervention: stopping/migrating Vms as Host's state will not\n  turn to maintenance while VMs are"
        " still running on it.(VM: {vm}, Source: {host}, Destination: {target})."), "error")
    VM_SET_TO_UNKNOWN_STATUS = EventType(142, "VM {vm} was set to the Unknown status.", "warning")
    VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE = EventType(
        143, "Vm {vm} was shut down due to {host} host reboot or manual fence")
    USER_STARTED_VM = EventType(153, "VM {vm} was started by {user} (Host: {host}).")
    VM_CANCEL_MIGRATION = EventType(161, "Migration cancelled (VM: {vm}, Source: {host}, User: {user}).")
    VM_CANCEL_MIGRATION_FAILED = EventType(162, "Failed to cancel migration for VM: {vm}", "error")
    VM_STATUS_RESTORED = EventType(163, "VM {vm} status was restored to {status}.")
    VM_MIGRATION_NO_VDS_TO_MIGRATE_TO = EventType(
        166, "No available host was found to migrate VM {vm} to.", "warning")
    VM_ALREADY_IN_REQUESTED_STATUS = EventType(
        254, "VM {vm} is already {status}, {action} was skipped. User: {user}.")
    USER_SUSPEND_VM = EventType(501, "Suspending VM {vm} was initiated by User {user} (Host: {host}).")
    USER_SUSPEND_VM_OK = EventType(503, "VM {vm} on Host {host} is suspended.")
    USER_VDS_MAINTENANCE_MIGRATION_FAILED = EventType(602, (
        "Host {host} cannot change into maintenance mode - not all Vms have been migrated successfully."
        " Consider manual intervention: stopping/migrating Vms running on this host."
        " (User: {user})."), "warning")
    HA_VM_FAILED = EventType(
        9602, "Highly Available VM {vm} failed. It will be restarted automatically.", "error")
# fmt: on


# -- The simulated clock, and what the engine keeps of the past: events, of which some show late.


Action = Callable[[], object]


class Timeline:
    """A clock that moves only when moved, and a queue of actions in the order they fall due."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        #: Seconds since the start.
        self.elapsed = 0.0
        self._order = count()
        self._queue: list[tuple[float, int, Action]] = []

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed)

    def after(self, seconds: float, action: Action) -> None:
        """Let the action fall due this many seconds from now, after all that is due at the same time."""
        heapq.heappush(self._queue, (self.elapsed + seconds, next(self._order), action))

    def next_due(self, until: float) -> Action | None:
        """Move to the next action that is due until then and take it; None moves all the way."""
        if self._queue and self._queue[0][0] <= until:
            due, _, action = heapq.heappop(self._queue)
            self.elapsed = max(self.elapsed, due)
            return action
        self.elapsed = max(self.elapsed, until)
        return None


class Jobs:
    """All jobs, oldest first."""

    def __init__(self, timeline: Timeline, random: Random) -> None:
        self._timeline = timeline
        self._random = random
        self.by_id: dict[str, Job] = {}

    def start(self, description: str, caller: Caller) -> Job:
        """Open a job for what the caller asked for."""
        job = Job(
            id=str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            description=description,
            status="started",
            started=self._timeline.now,
            correlation_id=caller.correlation_id,
        )
        self.by_id[job.id] = job
        return job

    def note(self, description: str, caller: Caller, status: str = "finished") -> Job:
        """Remember a job that has ended at once."""
        job = self.start(description, caller)
        self.end(job, status)
        return job

    def end(self, job: Job | None, status: str) -> None:
        """Close the job, if there is one and it is still open: finished, failed or aborted."""
        if job is not None and self.by_id[job.id].status == "started":
            self.by_id[job.id] = replace(self.by_id[job.id], status=status, ended=self._timeline.now)


class AuditLog:
    """All events. An id is given before its transaction ends, so a lower one may show after a higher."""

    def __init__(self, timeline: Timeline, random: Random, settings: Settings) -> None:
        self._timeline = timeline
        self._random = random
        self._settings = settings
        self._events: dict[int, Event] = {}
        self._silent_until: dict[tuple[object, ...], datetime] = {}

    def add(self, event: Event, *, prompt: bool = False, flood_seconds: int = 0) -> Event:
        """Give the event the next id and the moment it shows; a prompt one shows at once.

        The same event is not logged again within these seconds.
        """
        if flood_seconds and self._floods(event, flood_seconds):
            return event
        late = 0.0
        if not prompt and self._random.random() < self._settings.late_event_probability:
            late = self._random.uniform(0.0, self._settings.late_event_seconds)
        visible = self._timeline.now + timedelta(seconds=late)
        event = replace(event, id=len(self._events) + 1, visible=visible)
        self._events[event.id] = event
        return event

    def visible(self) -> tuple[Event, ...]:
        """What a list shows now: newest id first."""
        now = self._timeline.now
        return tuple(event for event in reversed(self._events.values()) if event.visible <= now)

    def has_external(self, origin: str, custom_id: int) -> bool:
        """Whether there has ever been an external event with this origin and custom id."""
        return any((one.origin, one.custom_id) == (origin, custom_id) for one in self._events.values())

    def _floods(self, event: Event, seconds: int) -> bool:
        key, now = (event.code, event.description, event.vm, event.host, event.cluster), self._timeline.now
        if self._silent_until.get(key, now) > now:
            return True
        self._silent_until[key] = now + timedelta(seconds=seconds)
        return False


def reference(record: Vm | Host | Cluster | DataCenter | None) -> Reference | None:
    return None if record is None else Reference(id=record.id, name=record.name)


def template_of(vm: Vm) -> Reference:
    """Give the template that a VM was made of; the state file knows no names of templates."""
    return Reference(id=vm.template) if vm.template else Reference(id=BLANK_TEMPLATE, name="Blank")
