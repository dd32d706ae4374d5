"""What the engine is asked to do, through the SDK: migrations, maintenance, upgrades, changes of groups.

What it may answer becomes a type; what it refuses keeps its own sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final

from ovirtsdk4 import types

from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.client import EngineConnection, checked
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.requests import permitted, read_entity, read_fields
from ovirt_placement.model import AffinityGroup, AffinityRule

#: What the engine keeps of a correlation id; anything else it would cut away, and we never find it again.
_CORRELATION_ID = re.compile(r"[0-9A-Za-z_-]{1,36}")


class Rejection(Exception):
    """The engine did not start the migration; its own sentences say why, where it gives any."""

    def __init__(self, code: int, *messages: str) -> None:
        """The code is that of HTTP: 404 where VM or host do not exist any more."""
        super().__init__("; ".join(messages) or "the engine gives no reason")
        #: Whether it may be so for any target: the state of VM, host or rules stands against it for now, or
        #: the engine's user may not migrate this VM.
        self.of_all = code in (409, 403)


_REJECTING: Final = frozenset({400, 403, 404, 409})


def migrate(
    connection: EngineConnection,
    vm_id: str,
    host_id: str | None,
    correlation_id: str,
    closure: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Ask the engine to migrate a VM to a host; on return it is accepted and under way, not finished.

    Without a host the engine chooses one.

    With `closure`, the VMs that a hard positive rule ties to it move along. The correlation id (letters,
    digits, `_` and `-`, at most 36) stands on every event of the migration. `check` is called right before
    the request is sent, after any log-in; what it raises prevents that. Raises a `Rejection`, or
    `EngineAway`, whose `request_sent` shows whether the engine may have started it nevertheless.
    """
    if not _CORRELATION_ID.fullmatch(correlation_id):
        raise ValueError(f"the engine would not keep the correlation id {correlation_id!r}")
    try:
        _send_action(
            connection,
            f"vms/{vm_id}",
            "migrate",
            correlation_id,
            check,
            host=types.Host(id=host_id) if host_id is not None else None,
            migrate_vms_in_affinity_closure=closure or None,
        )
    except EngineFault as fault:
        raise _rejection(fault, connection, vm_id, host_id) from None


def _rejection(
    fault: EngineFault, connection: EngineConnection, vm_id: str, host_id: str | None
) -> Exception:
    if fault.code == 400 and fault.fault.detail.strip() == "[]":
        return Rejection(400, "an external filter of the scheduling policy refused the host")
    if fault.code in (200, 400, 404):
        # The sentence would show it, but in the engine's language and release.
        for kind, collection, identity in (("VM", "/vms", vm_id), ("host", "/hosts", host_id)):
            if identity is not None and read_entity(connection, collection, identity, bytes) is None:
                return Rejection(404, f"the engine has no {kind} {identity}")
        return Rejection(400, *fault.fault.messages)
    return _sorted_fault(fault)


def _sorted_fault(fault: EngineFault) -> Exception:
    return Rejection(fault.code, *fault.fault.messages) if fault.code in _REJECTING else fault


@dataclass(frozen=True)
class VmState:
    """What the engine shows of a VM: during a migration its host is the source, then briefly the target."""

    status: str
    host: str | None


def read_vm(connection: EngineConnection, vm_id: str) -> VmState | None:
    """Read where a VM is now; None if the engine has no such VM."""
    fields = read_fields(connection, "/vms", vm_id, "status", "host")
    if fields is None:
        return None
    return VmState(xml.text(fields.get("status"), "unassigned"), xml.reference(fields.get("host")))


class Progress(StrEnum):
    UNDER_WAY = "under way"
    ARRIVED = "arrived"  # up on the target
    RETURNED = "returned"  # up on the source: failed or cancelled
    ELSEWHERE = "elsewhere"  # up on a third host: another migration moved it
    STOPPED = "stopped"  # on no host any more
    GONE = "gone"  # removed from the engine


@dataclass(frozen=True)
class Watch:
    """Follows one accepted migration: feed it what `read_vm` sees; it sleeps nowhere and reads no clock."""

    source: str
    target: str
    #: The moment of acceptance, by the clock that `step` is given, in seconds.
    accepted_at: float
    #: Until then a VM that still shows as up on its source may not have been saved as migrating yet.
    patience_seconds: float = 5.0
    migrating_seen: bool = False
    progress: Progress = Progress.UNDER_WAY

    @property
    def ended(self) -> bool:
        return self.progress is not Progress.UNDER_WAY

    def step(self, seen: VmState | None, now: float) -> Watch:
        """Return the watch after one more look at the VM."""
        if seen is None:
            return replace(self, progress=Progress.GONE)
        if seen.status == "migrating":
            return replace(self, migrating_seen=True)
        if seen.host is None:
            return replace(self, progress=Progress.STOPPED)
        if seen.host == self.target:
            return replace(self, progress=Progress.ARRIVED)
        if seen.host != self.source:
            return replace(self, progress=Progress.ELSEWHERE)
        if self.migrating_seen or now - self.accepted_at >= self.patience_seconds:
            return replace(self, progress=Progress.RETURNED)
        return self


#: What stands in the engine's log besides a deactivation.
_REASON: Final = "maintenance by ovirt-enforcer"


@dataclass(frozen=True, slots=True)
class HostState:
    """What the engine shows of a host."""

    status: str
    update_available: bool


def read_host(connection: EngineConnection, host_id: str) -> HostState | None:
    """Read a host; None if the engine has no such host."""
    fields = read_fields(connection, "/hosts", host_id, "status", "update_available")
    if fields is None:
        return None
    status = xml.text(fields.get("status"), "unassigned")
    return HostState(status, xml.flag(fields.get("update_available")))


def _act(
    collection: str,
    action: str,
    connection: EngineConnection,
    identity: str,
    correlation_id: str,
    check: Callable[[], None],
    **arguments: Any,
) -> None:
    """Ask the engine for an action on one of its hosts or VMs.

    `check` is called right before the request is sent; what it raises prevents that. Raises a `Rejection`.
    """
    try:
        _send_action(connection, f"{collection}/{identity}", action, correlation_id, check, **arguments)
    except EngineFault as fault:
        raise _sorted_fault(fault) from None


def _send_action(
    connection: EngineConnection,
    path: str,
    action: str,
    correlation_id: str,
    check: Callable[[], None] = lambda: None,
    **arguments: Any,
) -> None:
    """Send it by the SDK's service for what is at this path."""
    with checked(check), connection.session(f"/{path}/{action}") as sdk:
        service = sdk.system_service().service(path)
        getattr(service, action)(query={"correlation_id": correlation_id}, **arguments)


# Each takes the connection, the id, the correlation id and the check.

#: Takes a host into maintenance; the engine migrates away what still runs there.
deactivate = partial(_act, "hosts", "deactivate", reason=_REASON)
#: Installs the updates that the engine has found; a host in maintenance stays there.
upgrade = partial(_act, "hosts", "upgrade", reboot=True)
#: Brings a host up.
activate = partial(_act, "hosts", "activate")
#: Has the guest of a VM shut down.
shut_down_vm = partial(_act, "vms", "shutdown")
#: Starts a VM where the engine sees fit.
start_vm = partial(_act, "vms", "start")


# That a cluster is being upgraded, and how far, the engine shows to people; it does nothing else with it. It
# keeps the correlation id of who began it. A second beginning is refused while one is under way.


@dataclass(frozen=True, slots=True)
class UpgradeState:
    """What the engine shows of a cluster's upgrade."""

    running: bool
    #: The correlation id of who began the last one.
    correlation_id: str
    #: Whether the engine keeps that id at all, as it does since it has a percentage.
    attributed: bool


def read_upgrade(connection: EngineConnection, cluster_id: str) -> UpgradeState:
    """Read how a cluster's upgrade stands; none is under way in one that is gone."""
    names = ("upgrade_in_progress", "upgrade_correlation_id", "upgrade_percent_complete")
    fields = read_fields(connection, "/clusters", cluster_id, *names) or {}
    return UpgradeState(
        xml.flag(fields.get("upgrade_in_progress")),
        xml.text(fields.get("upgrade_correlation_id"), ""),
        "upgrade_percent_complete" in fields,
    )


def _upgrade(
    action: types.ClusterUpgradeAction,
    connection: EngineConnection,
    cluster_id: str,
    correlation_id: str,
    percent: int | None = None,
) -> None:
    progress = {"upgrade_action": action, "upgrade_percent_complete": percent}
    _send_action(connection, f"clusters/{cluster_id}", "upgrade", correlation_id, **progress)


#: Shows that an upgrade has begun; the engine refuses that while another is under way.
start_upgrade = partial(_upgrade, types.ClusterUpgradeAction.START)
#: Shows how far it is, in percent; the engine refuses that if another began it.
show_progress = partial(_upgrade, types.ClusterUpgradeAction.UPDATE_PROGRESS)
#: Shows that it is over, also one that another began.
finish_upgrade = partial(_upgrade, types.ClusterUpgradeAction.FINISH)


# Affinity groups.


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

    The engine checks a group as a whole, and rounds its priority to 1e-7.
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
    """Remove a group, whatever its members."""
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
    if isinstance(value, AffinityRule):
        # Polarity always: the engine takes an enabled rule without one for no rule at all.
        return types.AffinityRule(enabled=value.enabled, positive=value.positive, enforcing=value.enforcing)
    if name in _TYPES:
        return [_TYPES[Members(name)](id=member_id) for member_id in value]
    return value


def _ask_sdk(connection: EngineConnection, path: str, request: Callable[[Any], Any]) -> Any:
    permit = "manipulate_affinity_groups on the cluster (roles ClusterAdmin, DataCenterAdmin, SuperUser)"
    with permitted(connection, "change affinity groups", permit), connection.session(path) as sdk:
        return request(sdk.system_service().service(path[1:]))
