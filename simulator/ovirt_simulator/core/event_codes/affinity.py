"""Affinity groups and labels, and how they contradict each other."""

from __future__ import annotations

from .event_type import EventType


class AffinityEvents:
    USER_ADDED_AFFINITY_GROUP = EventType(10350, "normal", "Affinity Group {group} was added. (User: {user})")
    USER_FAILED_TO_ADD_AFFINITY_GROUP = EventType(
        10351,
        "error",
        "Failed to add Affinity Group {group}. (User: {user})",
    )
    USER_UPDATED_AFFINITY_GROUP = EventType(
        10352, "normal", "Affinity Group {group} was updated. (User: {user})"
    )
    USER_FAILED_TO_UPDATE_AFFINITY_GROUP = EventType(
        10353,
        "error",
        "Failed to update Affinity Group {group}. (User: {user})",
    )
    USER_REMOVED_AFFINITY_GROUP = EventType(
        10354, "normal", "Affinity Group {group} was removed. (User: {user})"
    )
    VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY = EventType(
        10356,
        "error",
        (
            "The affinity groups: {groups}, with hosts :{hosts} and VMs : {vms}, have VM to host conflicts"
            " between positive and negative enforcing affinity groups."
        ),
    )
    VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY = EventType(
        10357,
        "warning",
        (
            "The affinity groups: {groups}, with hosts: {hosts} and VMs: {vms}, have VM to host conflicts"
            " between positive and negative affinity groups."
        ),
    )
    VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY = EventType(
        10358,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between"
            " VM to host affinity and VM to VM positive affinity."
        ),
    )
    VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY = EventType(
        10359,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs: {vms}, have conflicts between"
            " VM to host affinity and VM to VM negative affinity."
        ),
    )
    NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS = EventType(
        10360,
        "warning",
        (
            "The affinity groups: {groups}, with hosts : {hosts} and VMs : {vms} , have non intersecting"
            " positive hosts conflicts."
        ),
    )
    VM_TO_VM_AFFINITY_CONFLICTS = EventType(
        10361,
        "error",
        (
            "The affinity groups: {groups}, with VMs: {vms} and negative VMs: {negative_vms},"
            " have VM to VM conflicts between positive and negative affinity groups."
        ),
    )
    USER_ADDED_AFFINITY_LABEL = EventType(10380, "normal", "Affinity Label {label} was added. (User: {user})")
    USER_UPDATED_AFFINITY_LABEL = EventType(
        10382, "normal", "Affinity Label {label} was updated. (User: {user})"
    )
    USER_REMOVED_AFFINITY_LABEL = EventType(
        10384, "normal", "Affinity Label {label} was removed. (User: {user})"
    )
