"""Clusters, data centers, networks, scheduling there, and what clients report of their own."""

from __future__ import annotations

from .event_type import EventType


class ClusterEvents:
    USER_UPDATE_VM_CLUSTER_DEFAULT_HOST_CLEARED = EventType(
        250,
        "normal",
        "{vm} cluster was updated by {user}, Default host was reset to auto assign.",
    )
    USER_ADD_CLUSTER = EventType(809, "normal", "Cluster {cluster} was added by {user}")
    USER_REMOVE_CLUSTER = EventType(813, "normal", "Host cluster {cluster} was removed by {user}")
    USER_UPDATE_CLUSTER = EventType(811, "normal", "Host cluster {cluster} was updated by {user}")
    NETWORK_REMOVE_VM_INTERFACE = EventType(
        930,
        "normal",
        "Interface {nic} ({type}) was removed from VM {vm}. (User: {user})",
    )
    NETWORK_ADD_VM_INTERFACE = EventType(
        932,
        "normal",
        "Interface {nic} ({type}) was added to VM {vm}. (User: {user})",
    )
    ADD_VNIC_PROFILE = EventType(
        1122,
        "normal",
        (
            "VM network interface profile {profile} was added to network {network} in Data Center:"
            " {data_center}. (User: {user})"
        ),
    )
    REMOVE_VNIC_PROFILE = EventType(
        1126,
        "normal",
        (
            "VM network interface profile {profile} was removed from network {network} in Data Center:"
            " {data_center}. (User: {user})"
        ),
    )
    USER_START_CLUSTER_UPGRADE = EventType(
        892,
        "normal",
        "Successfully set upgrade running flag on Host cluster {cluster} by {user}",
    )
    USER_START_CLUSTER_UPGRADE_FAILED = EventType(
        893,
        "error",
        "Failed to set upgrade running flag on Host cluster {cluster} by {user}",
    )
    USER_FINISH_CLUSTER_UPGRADE = EventType(
        894,
        "normal",
        "Successfully cleared upgrade running flag on Host cluster {cluster} by (User: {user})",
    )
    USER_UPDATE_CLUSTER_UPGRADE = EventType(
        896,
        "normal",
        "Successfully updated upgrade percent complete on Host cluster {cluster} by (User: {user})",
    )
    USER_ADD_EXTERNAL_JOB = EventType(
        11000,
        "normal",
        "New external Job {description} was added by user {user}",
    )
    EXTERNAL_EVENT_NORMAL = EventType(9801, "normal", "{text}")
    EXTERNAL_EVENT_WARNING = EventType(9802, "warning", "{text}")
    EXTERNAL_EVENT_ERROR = EventType(9803, "error", "{text}")
    EXTERNAL_ALERT = EventType(9804, "alert", "{text}")
    USER_ADD_CLUSTER_POLICY = EventType(
        9910, "normal", "Scheduling Policy {policy} was added. (User: {user})"
    )
    USER_UPDATE_CLUSTER_POLICY = EventType(
        9912, "normal", "Scheduling Policy {policy} was updated. (User: {user})"
    )
    USER_REMOVE_CLUSTER_POLICY = EventType(
        9914, "normal", "Scheduling Policy {policy} was removed. (User: {user})"
    )
    FAILED_TO_CONNECT_TO_SCHEDULER_PROXY = EventType(
        9920,
        "error",
        (
            "Failed to connect to external scheduler proxy. External filters, scoring functions"
            " and load balancing will not be performed."
        ),
        60,
    )
    EXTERNAL_SCHEDULER_PLUGIN_ERROR = EventType(
        10500,
        "error",
        "Running the external scheduler plugin '{plugin}' failed: '{error}'",
        60,
    )
    EXTERNAL_SCHEDULER_ERROR = EventType(
        10501, "error", "Running the external scheduler failed: '{error}'", 60
    )
    CLUSTER_ALERT_HA_RESERVATION = EventType(
        10300,
        "alert",
        (
            "Cluster {cluster} failed the HA Reservation check, HA VMs on host(s): {hosts} will fail"
            " to migrate in case of a failover, consider adding resources or shutting down unused VMs."
        ),
        600,
    )
    CLUSTER_ALERT_HA_RESERVATION_DOWN = EventType(
        10301,
        "alert",
        "Cluster {cluster} passed the HA Reservation check.",
    )
