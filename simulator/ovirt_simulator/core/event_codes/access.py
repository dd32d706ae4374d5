"""Log-ins, users, roles, permissions and tags."""

from __future__ import annotations

from .event_type import EventType


class AccessEvents:
    USER_VDC_LOGIN = EventType(
        30,
        "normal",
        "User {user} connecting from '{source}' using session '{session}' logged in.",
    )
    USER_UPDATE_TAG = EventType(430, "normal", "Tag {tag} configuration was updated by {user}.")
    USER_ADD_TAG = EventType(432, "normal", "New Tag {tag} was created by {user}.")
    USER_REMOVE_TAG = EventType(434, "normal", "Tag {tag} was removed by {user}.")
    USER_ATTACH_TAG_TO_VM = EventType(440, "normal", "Tag {tag} was attached to VM(s) {names} by {user}.")
    USER_DETACH_VM_FROM_TAG = EventType(446, "normal", "Tag {tag} was detached from VM(s) {names} by {user}.")
    USER_ATTACH_TAG_TO_VM_EXISTS = EventType(454, "warning", "Tag {tag} already attached to VM(s) {names}.")
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
