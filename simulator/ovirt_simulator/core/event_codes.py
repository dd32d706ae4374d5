"""The audit log's event codes: number, severity and text of each, as the engine has them.

Source: the engine's AuditLogType and AuditLogMessages.
"""

from __future__ import annotations

from enum import Enum


class EventCode(Enum):
    """One type of event; its text is a format string over the names that the audit log puts in."""

    VDS_FAILURE = (12, "error", "Host {host} is non responsive.")
    VDS_DETECTED = (13, "normal", "Status of host {host} was set to {status}.")
    VDS_RECOVER = (14, "normal", "Host {host} is rebooting.")
    VDS_MAINTENANCE = (15, "normal", "Host {host} was switched to Maintenance Mode.")
    VDS_ACTIVATE = (16, "normal", "Activation of host {host} initiated by {user}.")
    USER_VDC_LOGIN = (
        30,
        "normal",
        "User {user} connecting from '{source}' using session '{session}' logged in.",
    )
    USER_ADD_VM_TEMPLATE_SUCCESS = (29, "normal", "Template {template} was created successfully.")
    USER_RUN_VM = (32, "normal", "VM {vm} started on Host {host}")
    USER_STOP_VM = (33, "normal", "VM {vm} powered off by {user} (Host: {host}).")
    USER_ADD_VM = (34, "normal", "VM {vm} was created by {user}.")
    USER_UPDATE_VM = (35, "normal", "VM {vm} configuration was updated by {user}.")
    USER_ADD_VM_STARTED = (37, "normal", "VM {vm} creation was initiated by {user}.")
    USER_ADD_VDS = (42, "normal", "Host {host} was added by {user}.")
    USER_UPDATE_VDS = (43, "normal", "Host {host} configuration was updated by {user}.")
    USER_REMOVE_VDS = (44, "normal", "Host {host} was removed by {user}.")
    USER_CHANGE_DISK_VM = (38, "normal", "CD {disk} was inserted to VM {vm} by {user}.")
    USER_CREATE_SNAPSHOT = (
        45,
        "normal",
        "Snapshot '{snapshot}' creation for VM '{vm}' was initiated by {user}.",
    )
    USER_TRY_BACK_TO_SNAPSHOT = (
        46,
        "normal",
        "Snapshot-Preview {snapshot} for VM {vm} was initiated by {user}.",
    )
    USER_ADD_VM_TEMPLATE = (
        48,
        "normal",
        "Creation of Template {template} from VM {vm} was initiated by {user}.",
    )
    USER_REMOVE_VM_TEMPLATE = (50, "normal", "Removal of Template {template} was initiated by {user}.")
    USER_ADD_VM_TEMPLATE_FINISHED_SUCCESS = (
        51,
        "normal",
        "Creation of Template {template} from VM {vm} has been completed.",
    )
    USER_ADD_VM_FINISHED_SUCCESS = (53, "normal", "VM {vm} creation has been completed.")
    USER_FAILED_RUN_VM = (54, "error", "Failed to run VM {vm}{error} (User: {user}).")
    VM_DOWN = (61, "normal", "VM {vm} is down. {exit}")
    VM_MIGRATION_START = (
        62,
        "normal",
        "Migration started (VM: {vm}, Source: {host}, Destination: {target}, User: {user}). ",
    )
    VM_MIGRATION_DONE = (
        63,
        "normal",
        (
            "Migration completed (VM: {vm}, Source: {source}, Destination: {host}, Duration: {seconds}"
            " seconds, Total: {seconds} seconds, Actual downtime: (N/A))"
        ),
    )
    VM_MIGRATION_ABORT = (
        64,
        "error",
        ("Migration failed: {error} (VM: {vm}, Source: {host})."),
    )
    VM_MIGRATION_FAILED = (65, "error", "Migration failed{error} (VM: {vm}, Source: {host}).")
    VM_MIGRATION_START_SYSTEM_INITIATED = (
        67,
        "normal",
        "Migration initiated by system (VM: {vm}, Source: {host}, Destination: {target}, Reason: {reason}).",
    )
    USER_CREATE_SNAPSHOT_FINISHED_SUCCESS = (
        68,
        "normal",
        "Snapshot '{snapshot}' creation for VM '{vm}' has been completed.",
    )
    USER_TRY_BACK_TO_SNAPSHOT_FINISH_SUCCESS = (
        71,
        "normal",
        "Snapshot-Preview {snapshot} for VM {vm} has been completed.",
    )
    USER_INITIATED_SHUTDOWN_VM = (73, "normal", "VM shutdown initiated by {user} on VM {vm} (Host: {host}).")
    USER_UPDATE_DISK = (86, "normal", "Disk {disk} was updated by {user}.")
    USER_UPDATE_VM_DISK = (88, "normal", "VM {vm} {disk} disk was updated by {user}.")
    USER_COMMIT_RESTORE_FROM_SNAPSHOT_START = (
        94,
        "normal",
        "Committing a Snapshot-Preview for VM {vm} was initialized by {user}.",
    )
    USER_COMMIT_RESTORE_FROM_SNAPSHOT_FINISH_SUCCESS = (
        95,
        "normal",
        "Committing a Snapshot-Preview for VM {vm} has been completed.",
    )
    USER_STOP_SUSPENDED_VM = (111, "normal", "Suspended VM {vm} has had its save state cleared by {user}.")
    USER_REMOVE_VM_FINISHED = (113, "normal", "VM {vm} was successfully removed by {user}.")
    VM_DOWN_ERROR = (119, "error", "VM {vm} is down with error. Exit message: {exit}.")
    VM_MIGRATION_TO_SERVER_FAILED = (
        120,
        "error",
        "Migration failed{error} (VM: {vm}, Source: {host}, Destination: {target}).",
    )
    VM_MIGRATION_TRYING_RERUN = (
        128,
        "warning",
        "Failed to migrate VM {vm} to Host {target}{error}. Trying to migrate to another Host.",
    )
    VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE = (
        140,
        "error",
        (
            "Migration failed{error} while Host is in 'preparing for maintenance' state.\n"
            "  Consider manual intervention: stopping/migrating Vms as Host's state will not\n"
            "  turn to maintenance while VMs are still running on it."
            "(VM: {vm}, Source: {host}, Destination: {target})."
        ),
    )
    VM_SET_TO_UNKNOWN_STATUS = (142, "warning", "VM {vm} was set to the Unknown status.")
    VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE = (
        143,
        "normal",
        "Vm {vm} was shut down due to {host} host reboot or manual fence",
    )
    USER_ADD = (149, "normal", "User '{name}' was added successfully to the system.")
    USER_INITIATED_RUN_VM = (150, "normal", "Starting VM {vm} was initiated by {user}.")
    USER_STARTED_VM = (153, "normal", "VM {vm} was started by {user} (Host: {host}).")
    USER_REBOOT_VM = (157, "normal", "VM {vm} is rebooting. Rebooted by: {user}")
    VM_CANCEL_MIGRATION = (
        161,
        "normal",
        "Migration cancelled (VM: {vm}, Source: {host}, User: {user}).",
    )
    VM_SET_TICKET = (164, "normal", "User {user} initiated console session for VM {vm}")
    VM_CANCEL_MIGRATION_FAILED = (162, "error", "Failed to cancel migration for VM: {vm}")
    VM_STATUS_RESTORED = (163, "normal", "VM {vm} status was restored to {status}.")
    VM_MIGRATION_NO_VDS_TO_MIGRATE_TO = (
        166,
        "warning",
        "No available host was found to migrate VM {vm} to.",
    )
    USER_RESET_VM = (221, "normal", "VM {vm} is resetting. Reset by: {user}")
    USER_UPDATE_VM_CLUSTER_DEFAULT_HOST_CLEARED = (
        250,
        "normal",
        "{vm} cluster was updated by {user}, Default host was reset to auto assign.",
    )
    USER_REMOVE_VM_TEMPLATE_FINISHED = (
        251,
        "normal",
        "Removal of Template {template} has been completed.",
    )
    SYSTEM_UPDATE_VM = (253, "normal", "VM {vm} configuration was updated by system.")
    VM_ALREADY_IN_REQUESTED_STATUS = (
        254,
        "normal",
        "VM {vm} is already {status}, {action} was skipped. User: {user}.",
    )
    USER_ADD_VM_POOL_WITH_VMS = (
        302,
        "normal",
        "VM Pool {pool} (containing {count} VMs) was created by {user}.",
    )
    USER_REMOVE_VM_POOL = (304, "normal", "VM Pool {pool} was removed by {user}.")
    USER_REMOVE_VM_FROM_POOL = (308, "normal", "VM {vm} was removed from VM Pool {pool} by {user}.")
    USER_UPDATE_VM_POOL = (314, "normal", "VM Pool {pool} configuration was updated by {user}.")
    USER_REMOVE_ADUSER = (325, "normal", "User {name} was removed by {user}.")
    USER_REMOVE_SNAPSHOT = (
        342,
        "normal",
        "Snapshot '{snapshot}' deletion for VM '{vm}' was initiated by {user}.",
    )
    USER_REMOVE_SNAPSHOT_FINISHED_SUCCESS = (
        356,
        "normal",
        "Snapshot '{snapshot}' deletion for VM '{vm}' has been completed.",
    )
    USER_REMOVE_AD_GROUP = (408, "normal", "Group {name} was removed by {user}.")
    USER_UPDATE_TAG = (430, "normal", "Tag {tag} configuration was updated by {user}.")
    USER_ADD_TAG = (432, "normal", "New Tag {tag} was created by {user}.")
    USER_REMOVE_TAG = (434, "normal", "Tag {tag} was removed by {user}.")
    USER_ATTACH_TAG_TO_USER = (436, "normal", "Tag {tag} was attached to User(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_USER_GROUP = (438, "normal", "Tag {tag} was attached to Group(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_VM = (440, "normal", "Tag {tag} was attached to VM(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_VDS = (442, "normal", "Tag {tag} was attached to Host(s) {names} by {user}.")
    USER_DETACH_VDS_FROM_TAG = (444, "normal", "Tag {tag} was detached from Host(s) {names} by {user}.")
    USER_DETACH_VM_FROM_TAG = (446, "normal", "Tag {tag} was detached from VM(s) {names} by {user}.")
    USER_DETACH_USER_FROM_TAG = (448, "normal", "Tag {tag} detached from User(s) {names} by {user}.")
    USER_DETACH_USER_GROUP_FROM_TAG = (
        450,
        "normal",
        "Tag {tag} was detached from Group(s) {names} by {user}.",
    )
    USER_ATTACH_TAG_TO_USER_EXISTS = (452, "warning", "Tag {tag} already attached to User(s) {names}.")
    USER_ATTACH_TAG_TO_USER_GROUP_EXISTS = (453, "warning", "Tag {tag} already attached to Group(s) {names}.")
    USER_ATTACH_TAG_TO_VM_EXISTS = (454, "warning", "Tag {tag} already attached to VM(s) {names}.")
    USER_ATTACH_TAG_TO_VDS_EXISTS = (455, "warning", "Tag {tag} already attached to Host(s) {names}.")
    USER_SUSPEND_VM = (501, "normal", "Suspending VM {vm} was initiated by User {user} (Host: {host}).")
    USER_SUSPEND_VM_OK = (503, "normal", "VM {vm} on Host {host} is suspended.")
    VDS_INSTALL = (504, "normal", "Host {host} installed")
    VDS_INITIATED_RUN_VM = (506, "normal", "Trying to restart VM {vm} on Host {host}")
    VDS_INITIATED_RUN_VM_FAILED = (507, "error", "Failed to restart VM {vm} on Host {host}")
    USER_EJECT_VM_DISK = (528, "normal", "CD was ejected from VM {vm} by {user}.")
    VDS_ANSIBLE_INSTALL_STARTED = (
        560,
        "normal",
        "Ansible host-deploy playbook execution has started on host {host}.",
    )
    USER_VDS_MAINTENANCE = (
        600,
        "normal",
        "Host {host} was switched to Maintenance mode by {user} (Reason: {reason}).",
    )
    USER_VDS_MAINTENANCE_MIGRATION_FAILED = (
        602,
        "warning",
        (
            "Host {host} cannot change into maintenance mode - not all Vms have been migrated"
            " successfully. Consider manual intervention: stopping/migrating Vms running on this host."
            " (User: {user})."
        ),
    )
    USER_VDS_MAINTENANCE_WITHOUT_REASON = (
        620,
        "normal",
        "Host {host} was switched to Maintenance mode by {user}.",
    )
    USER_ADD_CLUSTER = (809, "normal", "Cluster {cluster} was added by {user}")
    USER_UPDATE_CLUSTER = (811, "normal", "Host cluster {cluster} was updated by {user}")
    USER_REMOVE_CLUSTER = (813, "normal", "Host cluster {cluster} was removed by {user}")
    USER_ADD_PERMISSION = (
        850,
        "normal",
        (
            "User/Group {subject}, Namespace *, Authorization provider: internal-authz was granted"
            " permission for Role {role} on {type} {object}, by {user}."
        ),
    )
    USER_REMOVE_PERMISSION = (
        852,
        "normal",
        "User/Group {subject} Role {role} permission was removed from {type} {object} by {user}",
    )
    USER_UPDATE_ROLE = (856, "normal", "{user} Role was updated to the {role} Role")
    USER_REMOVE_ROLE = (858, "normal", "Role {role} removed from {user}")
    USER_ATTACHED_ACTION_GROUP_TO_ROLE = (
        860,
        "normal",
        "Action group {permit} was attached to Role {role} by {user}",
    )
    USER_DETACHED_ACTION_GROUP_FROM_ROLE = (
        862,
        "normal",
        "Action group {permit} was detached from Role {role} by {user}",
    )
    USER_ADD_ROLE_WITH_ACTION_GROUP = (864, "normal", "Role {role} was added by {user}")
    NETWORK_REMOVE_VM_INTERFACE = (
        930,
        "normal",
        "Interface {nic} (VirtIO) was removed from VM {vm}. (User: {user})",
    )
    NETWORK_ADD_VM_INTERFACE = (
        932,
        "normal",
        "Interface {nic} (VirtIO) was added to VM {vm}. (User: {user})",
    )
    NETWORK_UPDATE_VM_INTERFACE = (
        934,
        "normal",
        "Interface {nic} (VirtIO) was updated for VM {vm}.  (User: {user})",
    )
    NETWORK_ATTACH_NETWORK_TO_CLUSTER = (946, "normal", "Network {network} attached to Cluster {cluster}")
    NETWORK_DETACH_NETWORK_TO_CLUSTER = (948, "normal", "Network {network} detached from Cluster {cluster}")
    USER_ADD_STORAGE_POOL = (
        950,
        "normal",
        (
            "Data Center {data_center}, Compatibility Version {version} and Quota Type DISABLED"
            " was added by {user}"
        ),
    )
    USER_UPDATE_STORAGE_POOL = (952, "normal", "Data Center {data_center} was updated by {user}")
    USER_REMOVE_STORAGE_POOL = (954, "normal", "Data Center {data_center} was removed by {user}")
    USER_UPDATE_STORAGE_DOMAIN = (958, "normal", "Storage Domain {domain} was updated by {user}.")
    USER_ACTIVATED_STORAGE_DOMAIN = (
        966,
        "normal",
        "Storage Domain {domain} (Data Center {data_center}) was activated by {user}",
    )
    USER_DEACTIVATED_STORAGE_DOMAIN = (
        968,
        "normal",
        (
            "Storage Domain {domain} (Data Center {data_center}) was deactivated and has moved to"
            " 'Preparing for maintenance' until it will no longer be accessed by any Host of the Data Center."
        ),
    )
    ADD_VNIC_PROFILE = (
        1122,
        "normal",
        (
            "VM network interface profile {profile} was added to network {network} in Data Center:"
            " {data_center}. (User: {user})"
        ),
    )
    REMOVE_VNIC_PROFILE = (
        1126,
        "normal",
        (
            "VM network interface profile {profile} was removed from network {network} in Data Center:"
            " {data_center}. (User: {user})"
        ),
    )
    USER_COPIED_DISK = (2004, "normal", "User {user} is copying disk {disk} to domain {domain}.")
    USER_COPIED_DISK_FINISHED_SUCCESS = (
        2006,
        "normal",
        "User {user} finished copying disk {disk} to domain {domain}.",
    )
    USER_MOVED_DISK = (2008, "normal", "User {user} moving disk {disk} to domain {domain}.")
    USER_MOVED_DISK_FINISHED_SUCCESS = (
        2010,
        "normal",
        "User {user} finished moving disk {disk} to domain {domain}.",
    )
    USER_FINISHED_REMOVE_DISK = (
        2014,
        "normal",
        "Disk {disk} was successfully removed from domain {domain} (User {user}).",
    )
    USER_ATTACH_DISK_TO_VM = (
        2016,
        "normal",
        "Disk {disk} was successfully attached to VM {vm} by {user}.",
    )
    USER_DETACH_DISK_FROM_VM = (
        2018,
        "normal",
        "Disk {disk} was successfully detached from VM {vm} by {user}.",
    )
    USER_ADD_DISK_FINISHED_SUCCESS = (2021, "normal", "The disk '{disk}' was successfully added.")
    HOST_UPGRADE_STARTED = (840, "normal", "Host {host} upgrade was started (User: {user}).")
    HOST_UPGRADE_FAILED = (841, "error", "Failed to upgrade Host {host} (User: {user}). <UNKNOWN>.")
    HOST_UPGRADE_FINISHED = (842, "normal", "Host {host} upgrade was completed successfully.")
    HOST_UPDATES_ARE_AVAILABLE_WITH_PACKAGES = (
        843,
        "normal",
        "Host {host} has available updates: {packages}.",
        86_400,
    )
    HOST_AVAILABLE_UPDATES_STARTED = (
        884,
        "normal",
        "Started to check for available updates on host {host}.",
    )
    HOST_AVAILABLE_UPDATES_FINISHED = (
        885,
        "normal",
        ("Check for available updates on host {host} was completed successfully with message '{message}'."),
    )
    HOST_UPGRADE_FINISHED_AND_WILL_BE_REBOOTED = (
        888,
        "normal",
        "Upgrade was successful and host {host} will be rebooted.",
    )
    USER_START_CLUSTER_UPGRADE = (
        892,
        "normal",
        "Successfully set upgrade running flag on Host cluster {cluster} by {user}",
    )
    USER_FINISH_CLUSTER_UPGRADE = (
        894,
        "normal",
        "Successfully cleared upgrade running flag on Host cluster {cluster} by (User: {user})",
    )
    USER_UPDATE_CLUSTER_UPGRADE = (
        896,
        "normal",
        "Successfully updated upgrade percent complete on Host cluster {cluster} by (User: {user})",
    )
    HOT_SET_NUMBER_OF_CPUS = (
        2033,
        "normal",
        "Hotplug CPU: changed the number of CPUs on VM {vm} from {previous} to {now}",
    )
    HOT_SET_MEMORY = (
        2039,
        "normal",
        "Hotset memory: changed the amount of memory on VM {vm} from {previous} to {now}",
    )
    MEMORY_HOT_UNPLUG_SUCCESSFULLY_REQUESTED = (
        2046,
        "normal",
        (
            "Hot unplug of memory device ({device}) of size {size}MB was successfully requested on VM '{vm}'."
            " Physical memory guaranteed updated from {previous}MB to {now}MB}}."
        ),
    )
    HA_VM_FAILED = (
        9602,
        "error",
        "Highly Available VM {vm} failed. It will be restarted automatically.",
    )
    COLD_REBOOT_VM_DOWN = (9611, "normal", "VM {vm} is down as a part of cold reboot process")
    MAC_POOL_ADD_SUCCESS = (10700, "normal", "MAC Pool '{pool}' (id={id}) was created. (User: {user})")
    MAC_POOL_EDIT_SUCCESS = (10702, "normal", "MAC Pool '{pool}' (id={id}) was changed. (User: {user})")
    MAC_POOL_REMOVE_SUCCESS = (10704, "normal", "MAC Pool '{pool}' (id={id}) was removed. (User: {user})")
    USER_ADD_EXTERNAL_JOB = (
        11000,
        "normal",
        "New external Job {description} was added by user {user}",
    )
    VDS_ALERT_FENCE_IS_NOT_CONFIGURED = (
        9000,
        "alert",
        "Failed to verify Power Management configuration for Host {host}.",
    )
    EXTERNAL_EVENT_NORMAL = (9801, "normal", "{text}")
    EXTERNAL_EVENT_WARNING = (9802, "warning", "{text}")
    EXTERNAL_EVENT_ERROR = (9803, "error", "{text}")
    EXTERNAL_ALERT = (9804, "alert", "{text}")
    USER_ADD_CLUSTER_POLICY = (9910, "normal", "Scheduling Policy {policy} was added. (User: {user})")
    USER_UPDATE_CLUSTER_POLICY = (9912, "normal", "Scheduling Policy {policy} was updated. (User: {user})")
    USER_REMOVE_CLUSTER_POLICY = (9914, "normal", "Scheduling Policy {policy} was removed. (User: {user})")
    FAILED_TO_CONNECT_TO_SCHEDULER_PROXY = (
        9920,
        "error",
        (
            "Failed to connect to external scheduler proxy. External filters, scoring functions"
            " and load balancing will not be performed."
        ),
        60,
    )
    EXTERNAL_SCHEDULER_PLUGIN_ERROR = (
        9921,
        "error",
        "Running the external plugin '{plugin}' failed: '{error}'",
        60,
    )
    EXTERNAL_SCHEDULER_ERROR = (9922, "error", "External scheduler error, exception message: '{error}'", 60)
    CLUSTER_ALERT_HA_RESERVATION = (
        10300,
        "alert",
        (
            "Cluster {cluster} failed the HA Reservation check, HA VMs on host(s): {hosts} will fail"
            " to migrate in case of a failover, consider adding resources or shutting down unused VMs."
        ),
        600,
    )
    CLUSTER_ALERT_HA_RESERVATION_DOWN = (
        10301,
        "alert",
        "Cluster {cluster} passed the HA Reservation check.",
    )
    USER_ADDED_AFFINITY_GROUP = (10350, "normal", "Affinity Group {group} was added. (User: {user})")
    USER_FAILED_TO_ADD_AFFINITY_GROUP = (
        10351,
        "error",
        "Failed to add Affinity Group {group}. (User: {user})",
    )
    USER_UPDATED_AFFINITY_GROUP = (10352, "normal", "Affinity Group {group} was updated. (User: {user})")
    USER_FAILED_TO_UPDATE_AFFINITY_GROUP = (
        10353,
        "error",
        "Failed to update Affinity Group {group}. (User: {user})",
    )
    USER_REMOVED_AFFINITY_GROUP = (10354, "normal", "Affinity Group {group} was removed. (User: {user})")
    VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY = (
        10356,
        "error",
        (
            "The affinity groups: {groups}, with hosts :{hosts} and VMs : {vms}, have VM to host conflicts"
            " between positive and negative enforcing affinity groups."
        ),
    )
    VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY = (
        10357,
        "warning",
        (
            "The affinity groups: {groups}, with hosts: {hosts} and VMs: {vms}, have VM to host conflicts"
            " between positive and negative affinity groups."
        ),
    )
    VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY = (
        10358,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between"
            " VM to host affinity and VM to VM positive affinity."
        ),
    )
    VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY = (
        10359,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between"
            " VM to host affinity and VM to VM negative affinity."
        ),
    )
    NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS = (
        10360,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs : {vms} , have non intersecting"
            " positive hosts conflicts."
        ),
    )
    VM_TO_VM_AFFINITY_CONFLICTS = (
        10361,
        "error",
        (
            "The affinity groups: {groups}, with VMs: {vms} and negative VMs: {negative_vms},"
            " have VM to VM conflicts between positive and negative affinity groups."
        ),
    )
    USER_ADDED_AFFINITY_LABEL = (10380, "normal", "Affinity Label {label} was added. (User: {user})")
    USER_UPDATED_AFFINITY_LABEL = (10382, "normal", "Affinity Label {label} was updated. (User: {user})")
    USER_REMOVED_AFFINITY_LABEL = (10384, "normal", "Affinity Label {label} was removed. (User: {user})")

    def __init__(self, number: int, severity: str, text: str, flood_seconds: int = 0) -> None:
        self.number = number
        self.severity = severity
        self.text = text
        #: Within this time the same event is logged once.
        self.flood_seconds = flood_seconds
