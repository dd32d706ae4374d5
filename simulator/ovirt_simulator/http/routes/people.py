"""Users, groups, roles and tags."""

from __future__ import annotations

from ovirt_simulator.http.resources import permissions, roles, tags, users
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/tags": ("tags", tags.list_tags),
        "/users": ("users", users.list_users),
        "/permissions": ("permissions", permissions.list_all),
        "/users/<wanted>/permissions": ("permissions", users.list_permissions),
        "/users/<wanted>/roles": ("roles", users.list_roles),
        "/users/<wanted>/tags": ("tags", users.list_tags),
        "/groups": ("groups", users.list_groups),
        "/groups/<wanted>/permissions": ("permissions", users.list_group_permissions),
        "/groups/<wanted>/roles": ("roles", users.list_group_roles),
        "/groups/<wanted>/tags": ("tags", users.list_group_tags),
        "/roles": ("roles", roles.list_roles),
        "/roles/<role_id>/permits": ("permits", roles.list_permits),
    },
    reads={
        "/tags/<tag_id>": tags.get_tag,
        "/permissions/<permission_id>": permissions.get,
        "/users/<wanted>": users.get_user,
        "/groups/<wanted>": users.get_group,
        "/roles/<role_id>": roles.get_role,
        "/roles/<role_id>/permits/<permit_id>": roles.get_permit,
    },
    posts={
        "/users": users.post_user,
        "/groups": users.post_group,
        "/roles": roles.post_role,
        "/roles/<role_id>/permits": roles.post_permit,
        "/tags": tags.post_tag,
    },
    puts={
        "/roles/<role_id>": roles.put_role,
        "/tags/<tag_id>": tags.put_tag,
    },
    deletes={
        "/users/<wanted>": users.delete_user,
        "/groups/<wanted>": users.delete_group,
        "/roles/<role_id>": roles.delete_role,
        "/roles/<role_id>/permits/<permit_id>": roles.delete_permit,
        "/tags/<tag_id>": tags.delete_tag,
    },
)
