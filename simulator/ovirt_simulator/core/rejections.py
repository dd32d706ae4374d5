"""A command that the engine refuses: the messages, and the HTTP status that the REST face answers with.

Source: the engine's EngineMessage and AppErrors; some texts are shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


class ErrorType(StrEnum):
    """The engine's error types of a message, which decide the HTTP status."""

    BAD_PARAMETERS = "BAD_PARAMETERS"
    CONFLICT = "CONFLICT"
    NONE = "NONE"


class Message(msgspec.Struct, frozen=True):
    """One reason of a refusal: the engine's message key and its resolved text."""

    key: str
    text: str
    type: ErrorType = ErrorType.NONE


class Rejected(Exception):
    """The engine refuses a command.

    Without messages it came after validation (an external filter refused): HTTP 400, and the detail `[]`.
    """

    def __init__(self, *messages: Message) -> None:
        super().__init__(", ".join(message.text for message in messages))
        self.messages = messages

    @property
    def http_status(self) -> int:
        """The status of the answer: 409 for a conflict, unless bad parameters come with it; else 400."""
        types = {message.type for message in self.messages} - {ErrorType.NONE}
        return 409 if types == {ErrorType.CONFLICT} else 400

    @property
    def detail(self) -> str:
        """The fault's detail: a list as Java renders it."""
        return "[" + ", ".join(message.text for message in self.messages) + "]"


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


_CONFLICT = ErrorType.CONFLICT
_BAD = ErrorType.BAD_PARAMETERS


def conflict(key: str, text: str) -> Rejected:
    """Refuse because of the state something is in: HTTP 409."""
    return Rejected(Message(key, text, _CONFLICT))


def bad_parameters(key: str, text: str) -> Rejected:
    """Refuse because of what was asked for: HTTP 400."""
    return Rejected(Message(key, text, _BAD))


def vm_not_found(action: str) -> Rejected:
    return bad_parameters("ACTION_TYPE_FAILED_VM_NOT_FOUND", f"Cannot {action} VM. VM is not found.")


def vm_name_used(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
        f"Cannot {action} VM. The VM name is already in use, please choose a unique name and try again.",
    )


def guaranteed_above_memory(action: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_MIN_MEMORY_CANNOT_EXCEED_MEMORY_SIZE",
        f"Cannot {action} VM. Physical Memory Guaranteed cannot exceed Memory Size.",
    )


def illegal_priority(action: str, most: int) -> Rejected:
    return bad_parameters(
        "VM_OR_TEMPLATE_ILLEGAL_PRIORITY_VALUE",
        f"Cannot {action} VM. Illegal priority value: it must be between 0 and {most}.",
    )


def vm_not_down_for_removal() -> Rejected:
    return conflict(
        "VM_CANNOT_REMOVE_VM_WHEN_STATUS_IS_NOT_DOWN",
        "Cannot remove VM that its state is not down.\n-Please stop the VM first.",
    )


def vm_being_migrated(name: str) -> Message:
    """Give the message of the lock that a migration holds; it names no action of its own."""
    return Message(
        "ACTION_TYPE_FAILED_VM_IS_BEING_MIGRATED",
        f"Cannot migrate VM. VM {name} is being migrated.",
        _CONFLICT,
    )


def vm_locked(name: str) -> Message:
    return Message(
        "ACTION_TYPE_FAILED_OBJECT_LOCKED",
        f"Cannot run VM. Related operation on VM {name} is currently in progress. Please try again later.",
        _CONFLICT,
    )


def migration_in_progress(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_MIGRATION_IN_PROGRESS", f"Cannot {action} VM. VM migration is in progress."
    )


def vm_not_running(action: str) -> Rejected:
    return conflict("ACTION_TYPE_FAILED_VM_IS_NOT_RUNNING", f"Cannot {action} VM. VM is not running.")


def vm_saving_or_restoring(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VM_IS_SAVING_RESTORING",
        f"Cannot {action} VM. VM is in saving/restoring state.\n"
        "-Please try again when the VM is either up or down.",
    )


def vm_running(action: str) -> Rejected:
    return conflict("ACTION_TYPE_FAILED_VM_IS_RUNNING", f"Cannot {action} VM. VM is running.")


def vm_status_illegal(action: str, status: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VM_STATUS_ILLEGAL",
        f"Cannot {action} VM because the VM is in {status} status.",
    )


def vm_pinned() -> Rejected:
    return conflict("ACTION_TYPE_FAILED_VM_IS_PINNED_TO_HOST", "Cannot migrate VM. VM is pinned to Host.")


def vm_not_forced() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VM_IS_NON_MIGRTABLE_AND_IS_NOT_FORCED_BY_USER_TO_MIGRATE",
        "Cannot migrate VM. VM is non migratable and user did not specify the force-migration flag",
    )


def paused_eio() -> Rejected:
    return Rejected(
        Message(
            "MIGRATE_PAUSED_EIO_VM_IS_NOT_SUPPORTED",
            "Migrating a VM in paused status due to I/O error is not supported.",
        )
    )


def invalid_host(action: str) -> Rejected:
    return bad_parameters("VDS_INVALID_SERVER_ID", f"Cannot {action} VM. Invalid Host Id.")


def hosts_of_another_cluster(action: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_DEDICATED_VDS_NOT_IN_SAME_CLUSTER",
        f"Cannot {action} VM. Specific Host(s) selected that are not in the same cluster as the VM.",
    )


def vm_must_be_down() -> Rejected:
    return conflict(
        "VM_STATUS_NOT_VALID_FOR_UPDATE", "Cannot update a VM in this status. Try stopping the VM first."
    )


def invalid_cluster() -> Rejected:
    return bad_parameters("VM_CLUSTER_IS_NOT_VALID", "Cannot edit VM Cluster. Cluster ID is not valid.")


def cluster_of_another_data_center() -> Rejected:
    return conflict(
        "VM_CANNOT_MOVE_TO_CLUSTER_IN_OTHER_STORAGE_POOL",
        "VM can be moved only to a Cluster in the same Data Center.",
    )


def host_not_up(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VDS_STATUS_ILLEGAL",
        f"Cannot {action} VM. Operation can be performed only when Host status is Up.",
    )


def same_host() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_MIGRATION_TO_SAME_HOST",
        "Cannot migrate VM, source and destination is the same.",
    )


def between_clusters() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_MIGRATE_BETWEEN_TWO_CLUSTERS", "Cannot migrate VM between two clusters."
    )


def not_migrating() -> Rejected:
    return conflict("ACTION_TYPE_FAILED_VM_IS_NOT_MIGRATING", "Cannot cancel migration for non migrating VM.")


def no_hosts() -> Rejected:
    """Refuse because no host is in question at all; the message has no error type, so HTTP 400."""
    return Rejected(
        Message(
            "SCHEDULING_NO_HOSTS",
            "There are no hosts to use. Check that the cluster contains at least one host in Up state.",
        )
    )


def all_hosts_filtered(action: str, refusals: Iterable[tuple[str, str, str]]) -> Rejected:
    """Refuse because internal filters left no host; one message for each: host's name, filter, reason."""
    head = Message(
        "SCHEDULING_ALL_HOSTS_FILTERED_OUT",
        f"Cannot {action} VM. There is no host that satisfies current scheduling constraints."
        " See below for details:",
        _CONFLICT,
    )
    return Rejected(
        head,
        *(
            Message(
                "SCHEDULING_HOST_FILTERED_REASON_WITH_DETAIL",
                f"The host {host} did not satisfy internal filter {unit} because {reason}.",
            )
            for host, unit, reason in refusals
        ),
    )


def internal_error() -> Rejected:
    return Rejected(Message("ENGINE", "Internal Engine Error"))


def vdsm_refused(action: str) -> Rejected:
    return Rejected(Message("VDS_NETWORK_ERROR", f"Cannot {action} VM. VDSM refused the command."))


def host_not_found(action: str) -> Rejected:
    return bad_parameters("VDS_INVALID_SERVER_ID", f"Cannot {action} Host. Invalid Host Id.")


def host_in_maintenance() -> Rejected:
    return conflict(
        "VDS_CANNOT_MAINTENANCE_VDS_IS_IN_MAINTENANCE",
        "Cannot switch Host to Maintenance mode. Host is already in Maintenance mode.",
    )


def host_not_operational() -> Rejected:
    return conflict(
        "VDS_CANNOT_MAINTENANCE_VDS_IS_NOT_OPERATIONAL",
        "Cannot switch Host to Maintenance mode. Host is not operational.",
    )


def host_has_immovable_vms(names: Iterable[str]) -> Rejected:
    return conflict(
        "VDS_CANNOT_MAINTENANCE_IT_INCLUDES_NON_MIGRATABLE_VM",
        "Cannot switch Host to Maintenance mode. Host has running VMs that are not migratable: "
        + ", ".join(names)
        + ".",
    )


def host_status_for_upgrade_check() -> Rejected:
    return conflict(
        "CANNOT_CHECK_FOR_HOST_UPGRADE_STATUS_ILLEGAL",
        "Cannot check for upgrade Host. Valid Host statuses for upgrade check are Up or Non-Operational.",
    )


def host_already_up() -> Rejected:
    return conflict("VDS_ALREADY_UP", "Cannot activate Host. Host is already up.")


def policy_parameters_invalid() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_CLUSTER_POLICY_PARAMETERS_INVALID",
        "Cannot save Scheduling Policy. Parameters are invalid.",
    )


def host_status_for_upgrade() -> Rejected:
    return conflict(
        "CANNOT_UPGRADE_HOST_STATUS_ILLEGAL",
        "Cannot upgrade Host. Valid Host statuses for upgrade are Up, Maintenance, and Non-Operational.",
    )


def no_updates() -> Rejected:
    return conflict(
        "NO_AVAILABLE_UPDATES_FOR_HOST",
        "Cannot upgrade Host. There are no available updates for the host.",
    )
