"""Users, groups, roles and tags."""

from __future__ import annotations

from ovirt_simulator.http.resources import permissions, tags, users
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/tags": ("tags", tags.list_tags),
        "/users": ("users", users.list_users),
        "/users/<wanted>/permissions": ("permissions", users.list_permissions),
        "/users/<wanted>/roles": ("roles", users.list_roles),
        "/users/<wanted>/tags": ("tags", users.list_tags),
        "/groups": ("groups", users.list_groups),
        "/groups/<wanted>/permissions": ("permissions", users.list_group_permissions),
        "/groups/<wanted>/roles": ("roles", users.list_group_roles),
        "/groups/<wanted>/tags": ("tags", users.list_group_tags),
        "/roles": ("roles", permissions.list_roles),
        "/roles/<role_id>/permits": ("permits", permissions.list_permits),
    },
    reads={
        "/tags/<tag_id>": tags.get_tag,
        "/users/<wanted>": users.get_user,
        "/groups/<wanted>": users.get_group,
        "/roles/<role_id>": permissions.get_role,
        "/roles/<role_id>/permits/<permit_id>": permissions.get_permit,
    },
    posts={
        "/tags": tags.post_tag,
    },
    puts={
        "/tags/<tag_id>": tags.put_tag,
    },
    deletes={
        "/tags/<tag_id>": tags.delete_tag,
    },
)
