"""Users, groups, roles and tags."""

from __future__ import annotations

from ovirt_simulator.http.resources import held, permissions, roles, tags, users
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/tags": ("tags", tags.list_tags),
        "/users": ("users", users.list_users),
        "/permissions": ("permissions", permissions.list_all),
        "/users/<wanted>/permissions": ("permissions", held.OF_USER.list_permissions),
        "/users/<wanted>/roles": ("roles", held.OF_USER.list_roles),
        "/users/<wanted>/roles/<role_id>/permits": ("permits", held.OF_USER.list_permits),
        "/users/<wanted>/tags": ("tags", held.OF_USER.list_tags),
        "/groups": ("groups", users.list_groups),
        "/groups/<wanted>/permissions": ("permissions", held.OF_GROUP.list_permissions),
        "/groups/<wanted>/roles": ("roles", held.OF_GROUP.list_roles),
        "/groups/<wanted>/roles/<role_id>/permits": ("permits", held.OF_GROUP.list_permits),
        "/groups/<wanted>/tags": ("tags", held.OF_GROUP.list_tags),
        "/roles": ("roles", roles.list_roles),
        "/roles/<role_id>/permits": ("permits", roles.list_permits),
    },
    reads={
        "/tags/<tag_id>": tags.get_tag,
        "/permissions/<permission_id>": permissions.get,
        "/users/<wanted>": users.get_user,
        "/users/<wanted>/permissions/<permission_id>": held.OF_USER.get_permission,
        "/users/<wanted>/roles/<role_id>": held.OF_USER.get_role,
        "/users/<wanted>/tags/<tag_id>": held.OF_USER.get_tag,
        "/groups/<wanted>": users.get_group,
        "/groups/<wanted>/permissions/<permission_id>": held.OF_GROUP.get_permission,
        "/groups/<wanted>/roles/<role_id>": held.OF_GROUP.get_role,
        "/groups/<wanted>/tags/<tag_id>": held.OF_GROUP.get_tag,
        "/roles/<role_id>": roles.get_role,
        "/roles/<role_id>/permits/<permit_id>": roles.get_permit,
    },
    posts={
        "/users": users.post_user,
        "/users/<wanted>/permissions": held.OF_USER.post_permission,
        "/users/<wanted>/tags": held.OF_USER.post_tag,
        "/groups": users.post_group,
        "/groups/<wanted>/permissions": held.OF_GROUP.post_permission,
        "/groups/<wanted>/tags": held.OF_GROUP.post_tag,
        "/permissions": permissions.post,
        "/roles": roles.post_role,
        "/roles/<role_id>/permits": roles.post_permit,
        "/tags": tags.post_tag,
    },
    puts={
        "/roles/<role_id>": roles.put_role,
        "/tags/<tag_id>": tags.put_tag,
    },
    deletes={
        "/permissions/<permission_id>": permissions.delete,
        "/users/<wanted>": users.delete_user,
        "/users/<wanted>/permissions/<permission_id>": held.OF_USER.delete_permission,
        "/users/<wanted>/roles/<role_id>": held.OF_USER.delete_role,
        "/users/<wanted>/tags/<tag_id>": held.OF_USER.delete_tag,
        "/groups/<wanted>": users.delete_group,
        "/groups/<wanted>/permissions/<permission_id>": held.OF_GROUP.delete_permission,
        "/groups/<wanted>/roles/<role_id>": held.OF_GROUP.delete_role,
        "/groups/<wanted>/tags/<tag_id>": held.OF_GROUP.delete_tag,
        "/roles/<role_id>": roles.delete_role,
        "/roles/<role_id>/permits/<permit_id>": roles.delete_permit,
        "/tags/<tag_id>": tags.delete_tag,
    },
)
