"""Log-ins, users, roles, permissions and tags."""

from __future__ import annotations

from .event_type import EventType


class AccessEvents:
    USER_VDC_LOGIN = EventType(
        30,
        "normal",
        "User {user} connecting from '{source}' using session '{session}' logged in.",
    )
    USER_REMOVE_ADUSER = EventType(325, "normal", "User {name} was removed by {user}.")
    USER_UPDATE_TAG = EventType(430, "normal", "Tag {tag} configuration was updated by {user}.")
    USER_ADD_TAG = EventType(432, "normal", "New Tag {tag} was created by {user}.")
    USER_REMOVE_TAG = EventType(434, "normal", "Tag {tag} was removed by {user}.")
    USER_ATTACH_TAG_TO_USER = EventType(436, "normal", "Tag {tag} was attached to User(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_USER_GROUP = EventType(
        438, "normal", "Tag {tag} was attached to Group(s) {names} by {user}."
    )
    USER_ATTACH_TAG_TO_VM = EventType(440, "normal", "Tag {tag} was attached to VM(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_VDS = EventType(442, "normal", "Tag {tag} was attached to Host(s) {names} by {user}.")
    USER_DETACH_VDS_FROM_TAG = EventType(
        444, "normal", "Tag {tag} was detached from Host(s) {names} by {user}."
    )
    USER_DETACH_VM_FROM_TAG = EventType(446, "normal", "Tag {tag} was detached from VM(s) {names} by {user}.")
    USER_DETACH_USER_FROM_TAG = EventType(448, "normal", "Tag {tag} detached from User(s) {names} by {user}.")
    USER_DETACH_USER_GROUP_FROM_TAG = EventType(
        450,
        "normal",
        "Tag {tag} was detached from Group(s) {names} by {user}.",
    )
    USER_ATTACH_TAG_TO_USER_EXISTS = EventType(
        452, "warning", "Tag {tag} already attached to User(s) {names}."
    )
    USER_ATTACH_TAG_TO_USER_GROUP_EXISTS = EventType(
        453, "warning", "Tag {tag} already attached to Group(s) {names}."
    )
    USER_ATTACH_TAG_TO_VM_EXISTS = EventType(454, "warning", "Tag {tag} already attached to VM(s) {names}.")
    USER_ATTACH_TAG_TO_VDS_EXISTS = EventType(
        455, "warning", "Tag {tag} already attached to Host(s) {names}."
    )
    USER_ADD_PERMISSION = EventType(
        850,
        "normal",
        (
            "User/Group {subject}, Namespace *, Authorization provider: internal-authz was granted"
            " permission for Role {role} on {type} {object}, by {user}."
        ),
    )
    USER_REMOVE_PERMISSION = EventType(
        852,
        "normal",
        "User/Group {subject} Role {role} permission was removed from {type} {object} by {user}",
    )
    USER_UPDATE_ROLE = EventType(856, "normal", "{user} Role was updated to the {role} Role")
    USER_REMOVE_ROLE = EventType(858, "normal", "Role {role} removed from {user}")
    USER_ATTACHED_ACTION_GROUP_TO_ROLE = EventType(
        860,
        "normal",
        "Action group {permit} was attached to Role {role} by {user}",
    )
    USER_DETACHED_ACTION_GROUP_FROM_ROLE = EventType(
        862,
        "normal",
        "Action group {permit} was detached from Role {role} by {user}",
    )
    USER_ADD_ROLE_WITH_ACTION_GROUP = EventType(864, "normal", "Role {role} was added by {user}")
    USER_ADD = EventType(149, "normal", "User '{name}' was added successfully to the system.")
    USER_REMOVE_AD_GROUP = EventType(408, "normal", "Group {name} was removed by {user}.")
