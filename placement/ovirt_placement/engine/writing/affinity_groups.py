"""Changes affinity groups through the SDK; what the engine refuses keeps its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ovirtsdk4 import types

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault, EngineSetupError
from ovirt_placement.model import AffinityGroup, AffinityRule


class Members(StrEnum):
    """The member lists of a group, by the model's names."""

    VMS = "vms"
    HOSTS = "hosts"
    VM_LABELS = "vm_labels"
    HOST_LABELS = "host_labels"


#: What of the model the engine is sent.
EDITABLE = ("name", "priority", "vms_rule", "hosts_rule", *Members)


@dataclass(frozen=True)
class GroupEdit:
    """What to set; None leaves what is there (of a new group: the engine's default)."""

    name: str | None = None
    description: str | None = None
    #: The engine rounds to 1e-7.
    priority: float | None = None
    vms_rule: AffinityRule | None = None
    hosts_rule: AffinityRule | None = None
    #: Ids; each list replaces the whole list.
    vms: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    vm_labels: tuple[str, ...] | None = None
    host_labels: tuple[str, ...] | None = None


def add_group(connection: EngineConnection, cluster_id: str, edit: GroupEdit) -> str:
    """Add a group, which the engine checks as a whole; return its id. Raises as `EngineConnection.get`."""
    added = _ask_sdk(connection, _path(cluster_id), lambda groups: groups.add(_group(edit)))
    return str(added.id)


def edit_group(connection: EngineConnection, cluster_id: str, group_id: str, edit: GroupEdit) -> None:
    """Change a group, which the engine then checks as a whole. Raises what `EngineConnection.get` raises."""
    _ask_sdk(connection, _path(cluster_id, group_id), lambda group: group.update(_group(edit)))


def save_group(
    connection: EngineConnection,
    before: AffinityGroup | None,
    after: AffinityGroup,
    description: str | None = None,
) -> str:
    """Ask for what of a group is not as it was before, or for a new one; return its id."""
    changed = (name for name in EDITABLE if before is None or getattr(before, name) != getattr(after, name))
    edit = GroupEdit(description=description, **{name: getattr(after, name) for name in changed})
    if before is None:
        return add_group(connection, after.cluster, edit)
    if edit != GroupEdit():
        edit_group(connection, before.cluster, before.id, edit)
    return before.id


def remove_group(connection: EngineConnection, cluster_id: str, group_id: str) -> None:
    """Remove a group, whatever its members. Raises what `EngineConnection.get` raises."""
    _ask_sdk(connection, _path(cluster_id, group_id), lambda group: group.remove())


def add_member(
    connection: EngineConnection, cluster_id: str, group_id: str, members: Members, member_id: str
) -> None:
    """Add one member; the engine looks neither at its cluster nor for conflicts."""
    path = _path(cluster_id, group_id, members.replace("_", ""))
    _ask_sdk(connection, path, lambda listed: listed.add(_TYPES[members](id=member_id)))


def remove_member(
    connection: EngineConnection, cluster_id: str, group_id: str, members: Members, member_id: str
) -> None:
    """Take one member out; the engine does not look at what is left."""
    path = _path(cluster_id, group_id, members.replace("_", ""), member_id)
    _ask_sdk(connection, path, lambda member: member.remove())


_TYPES: dict[Members, Callable[..., Any]] = {
    Members.VMS: types.Vm,
    Members.HOSTS: types.Host,
    Members.VM_LABELS: types.AffinityLabel,
    Members.HOST_LABELS: types.AffinityLabel,
}


def _path(cluster_id: str, *below: str) -> str:
    return "/".join((f"/clusters/{cluster_id}/affinitygroups", *below))


def _group(edit: GroupEdit) -> types.AffinityGroup:
    return types.AffinityGroup(
        name=edit.name,
        description=edit.description,
        priority=edit.priority,
        vms_rule=_rule(edit.vms_rule),
        hosts_rule=_rule(edit.hosts_rule),
        **{
            members.value: [_TYPES[members](id=member_id) for member_id in ids]
            for members in Members
            if (ids := getattr(edit, members)) is not None
        },
    )


def _rule(rule: AffinityRule | None) -> types.AffinityRule | None:
    """Write polarity always: the engine takes an enabled rule without one for no rule at all."""
    if rule is None:
        return None
    return types.AffinityRule(enabled=rule.enabled, positive=rule.positive, enforcing=rule.enforcing)


def _ask_sdk(connection: EngineConnection, path: str, request: Callable[[Any], Any]) -> Any:
    """Make a request of the SDK's service for what is at a path."""
    try:
        with connection.session(path) as sdk:
            return request(sdk.system_service().service(path[1:]))
    except EngineFault as fault:
        if fault.code != 403:
            raise
        raise EngineSetupError(
            f"{connection.settings.username} may not change affinity groups: it needs the permit"
            " manipulate_affinity_groups on the cluster (roles ClusterAdmin, DataCenterAdmin, SuperUser)"
        ) from None
