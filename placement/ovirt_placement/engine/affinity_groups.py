"""Changes affinity groups through the SDK; what the engine refuses keeps its own sentence."""

from collections.abc import Callable
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


def save_group(
    connection: EngineConnection,
    before: AffinityGroup | None,
    after: AffinityGroup,
    description: str | None = None,
) -> str:
    """Ask for what of a group is not as it was before, or for a new one; return its id.

    The engine checks a group as a whole, and rounds its priority to 1e-7. Raises what `EngineConnection.get`
    raises.
    """
    changed = [name for name in EDITABLE if before is None or getattr(before, name) != getattr(after, name)]
    group = types.AffinityGroup(
        description=description, **{name: _sent(name, getattr(after, name)) for name in changed}
    )
    if before is None:
        added = _ask_sdk(connection, _path(after.cluster), lambda groups: groups.add(group))
        return str(added.id)
    if changed or description is not None:
        _ask_sdk(connection, _path(before.cluster, before.id), lambda known: known.update(group))
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


def _sent(name: str, value: Any) -> Any:
    """What the SDK sends for a field of the model."""
    if isinstance(value, AffinityRule):
        # Polarity always: the engine takes an enabled rule without one for no rule at all.
        return types.AffinityRule(enabled=value.enabled, positive=value.positive, enforcing=value.enforcing)
    if name in _TYPES:
        return [_TYPES[Members(name)](id=member_id) for member_id in value]
    return value


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
