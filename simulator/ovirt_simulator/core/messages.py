"""What the engine says: its events with their codes, and why it refuses a command.

Source: the engine's AuditLogType, EngineMessage and AppErrors; some texts are shortened.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec


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


# -- A command that is refused: the messages, and the HTTP status that the REST face answers with.
Value = TypeVar("Value")


class Message(msgspec.Struct, frozen=True):
    """One reason of a refusal, as the engine words it; a conflict is with the state that something is in."""

    text: str
    conflict: bool = False


class Rejected(Exception):
    """The engine refuses a command.

    Without messages it came after validation (an external filter refused): HTTP 400, and the detail `[]`.
    """

    def __init__(self, *messages: Message) -> None:
        super().__init__(", ".join(message.text for message in messages))
        self.messages = messages

    @property
    def http_status(self) -> int:
        return 409 if any(message.conflict for message in self.messages) else 400

    @property
    def detail(self) -> str:
        """The fault's detail: a list as Java renders it."""
        return f"[{self}]"


class NotFound(LookupError):
    """An entity that is not there, where the engine answers 404."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity not found: {name}")
        self.name = name


def existing(table: Mapping[str, Value], identity: str) -> Value:
    """Give what has this id; raise `NotFound` if nothing has."""
    if identity not in table:
        raise NotFound(identity)
    return table[identity]


def conflict(text: str) -> Rejected:
    """Refuse because of the state something is in: HTTP 409."""
    return Rejected(Message(text, conflict=True))


def bad_parameters(text: str) -> Rejected:
    """Refuse because of what was asked for: HTTP 400."""
    return Rejected(Message(text))


def cannot(action: str, reason: str, of: str = "VM") -> Rejected:
    """Refuse an action because of the state that what it is asked of is in."""
    return conflict(f"Cannot {action} {of}. {reason}")


def vm_not_found(action: str) -> Rejected:
    return bad_parameters(f"Cannot {action} VM. VM is not found.")


def vm_being_migrated(name: str) -> Message:
    """Give the message of the lock that a migration holds; it names no action of its own."""
    return Message(f"Cannot migrate VM. VM {name} is being migrated.", conflict=True)


def vm_status_illegal(action: str, status: str) -> Rejected:
    return conflict(f"Cannot {action} VM because the VM is in {status} status.")


def invalid_host(action: str) -> Rejected:
    return bad_parameters(f"Cannot {action} VM. Invalid Host Id.")


def all_hosts_filtered(action: str, refusals: Sequence[tuple[str, str, str]]) -> Rejected:
    """Refuse because internal filters left no host; one message for each: host's name, filter, reason.

    The engine puts one set of variables into all of them, so that each says what is true of the last one.
    """
    head = f"Cannot {action} VM. There is no host that satisfies current scheduling constraints."
    host, unit, reason = refusals[-1] if refusals else ("", "", "")
    last = Message(f"The host {host} did not satisfy internal filter {unit} because {reason}.")
    return Rejected(Message(f"{head} See below for details:", conflict=True), *([last] * len(refusals)))
