"""What can be wrong with the engine: too old, a user who may too little, two enforcers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.parsing import users as parsing
from ovirt_placement.engine.parsing.users import Permission, Root
from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_placement.model import Cluster
from ovirt_placement.model.names import Named
from ovirt_service.errors import UserError

#: Older engines know neither labels in affinity groups nor their priorities.
OLDEST = (4, 4)

_LATELY_SECONDS = 3600.0
#: The engine says so, with a reason, when it migrates a VM by itself.
_STARTED_BY_SYSTEM = EventCode.VM_MIGRATION_START_SYSTEM_INITIATED

#: The right that the enforcer needs on each cluster that it repairs, and the one that it needs on the system.
_MIGRATE, _REPORT = "migrate_vm", "inject_external_events"


def examine_version(root: Root) -> Iterator[Finding]:
    if root.version is not None and root.version < OLDEST:
        major, minor = root.version
        yield Finding(
            kind="engine_too_old",
            what=f"the engine is {major}.{minor}, older than {OLDEST[0]}.{OLDEST[1]}: its affinity groups"
            " know neither labels nor priorities",
            remedy="upgrade the engine",
        )


def examine_enforcement(enforcing: bool, events: Sequence[EngineEvent], now: float) -> Iterator[Finding]:
    """Look whether the engine enforces affinity too; `now` by its clock, in seconds since the epoch."""
    if not enforcing:
        return
    for event in reversed(events):
        reason = event.description.rpartition("Reason:")[2].lower()
        lately = now - event.time < _LATELY_SECONDS
        if event.code == _STARTED_BY_SYSTEM and "affinity" in reason and lately:
            yield Finding(
                kind="two_enforcers",
                what="both the engine and ovirt-enforcer repair affinity groups, and get in each other's way:"
                f" {event.description}",
                remedy="engine-config -s AffinityRulesEnforcementManagerEnabled=false and restart"
                ' ovirt-engine, or set [enforcer] mode = "observe"',
            )
            return


def examine_permissions(
    connection: EngineConnection, root: Root, clusters: Sequence[Cluster]
) -> Iterator[Finding]:
    """Look whether our user may do what the enforcer does: migrate VMs in every cluster, and add events.

    Raises `UserError` if the engine does not report it. What it has through a group is not counted.
    """
    held = _permissions(connection, root)
    roles = parsing.roles(connection.get("/roles", follow="permits"))
    if not any(permission.on is None and _REPORT in roles.get(permission.role, ()) for permission in held):
        yield Finding(
            kind="no_permit",
            what=f"{connection.settings.username} itself has no permit {_REPORT} on the system:"
            " ovirt-enforcer cannot report to the engine's administrators which groups a VM has lost",
            remedy="give the user the role ExternalEventsCreator on the system",
        )
    places = {permission.on for permission in held if _MIGRATE in roles.get(permission.role, ())}
    if None in places:
        return
    for cluster in clusters:
        if not places & {("cluster", cluster.id), ("data_center", cluster.data_center or "")}:
            yield Finding(
                kind="no_permit",
                what=f"{connection.settings.username} itself has no permit {_MIGRATE} on cluster"
                f" {cluster.name}: ovirt-enforcer cannot repair it",
                remedy="give the user a role with that permit on the cluster (docs/configuration.md)",
                cluster=Named(cluster.id, cluster.name),
            )


def _permissions(connection: EngineConnection, root: Root) -> tuple[Permission, ...]:
    user = root.user_id
    if user is None:
        names = parsing.user_names(connection.get("/users"))
        user = names.get(root.user_name) or names.get(connection.settings.username or "")
    if user is None:
        raise UserError(f"the engine does not say which user {connection.settings.username} is")
    return parsing.permissions(connection.get(f"/users/{user}/permissions"))
