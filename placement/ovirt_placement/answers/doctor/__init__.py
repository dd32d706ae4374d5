"""What `doctor` finds; and what can be wrong with the engine: version, clock, rights, enforcers, units."""

import time
from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.answers.document import utc_text
from ovirt_placement.answers.proxy import NoDiscovery, discover
from ovirt_placement.answers.setup import usual_units
from ovirt_placement.engine import users as parsing
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import EngineEvent, EventCode
from ovirt_placement.engine.policies import PolicyUnit
from ovirt_placement.engine.users import Root
from ovirt_placement.model import Cluster
from ovirt_placement.model.names import Identified, Named
from ovirt_placement.model.record import Record
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import redacted, shown


class FoundProblem(Record, frozen=True, omit_defaults=False):
    """One thing that is not right, and what would repair it."""

    kind: str
    sentence: str
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None
    #: Whether a rule means nothing for it: `--event` reports such findings to the engine.
    rule: bool


def problem(
    kind: str, sentence: str, remedy: str, *, cluster: Identified | None = None, rule: bool = False
) -> FoundProblem:
    return FoundProblem(
        kind, sentence, remedy, None if cluster is None else Named(cluster.id, cluster.name), rule
    )


class NotInUse(str):
    """A part of the product that is not at work, with what would put it to work; nothing is wrong with it."""

    __slots__ = ()


# -- What can be wrong with the engine: too old, a user who may too little, two enforcers.
#: Older engines know neither labels in affinity groups nor their priorities.
OLDEST = (4, 4)

_LAST_HOUR_SECONDS = 3600.0
#: The engine says so, with a reason, when it migrates a VM by itself.
_STARTED_BY_SYSTEM = EventCode.VM_MIGRATION_START_SYSTEM_INITIATED

#: The right that the enforcer needs on each cluster that it repairs, and the one that it needs on the system.
_MIGRATE, _REPORT = "migrate_vm", "inject_external_events"


def examine_version(root: Root) -> Iterator[FoundProblem]:
    if root.version is not None and root.version < OLDEST:
        major, minor = root.version
        yield problem(
            "engine_too_old",
            f"the engine is {major}.{minor}, older than {OLDEST[0]}.{OLDEST[1]}: its affinity groups"
            " know neither labels nor priorities",
            "upgrade the engine",
        )


def examine_enforcement(enforcing: bool, events: Sequence[EngineEvent], now: float) -> Iterator[FoundProblem]:
    """Look whether the engine enforces affinity too; `now` by its clock, in seconds since the epoch."""
    if not enforcing:
        return
    for event in reversed(events):
        reason = event.description.rpartition("Reason:")[2].lower()
        lately = now - event.time < _LAST_HOUR_SECONDS
        if event.code == _STARTED_BY_SYSTEM and "affinity" in reason and lately:
            yield problem(
                "two_enforcers",
                "both the engine and ovirt-enforcer repair affinity groups, and get in each other's way:"
                f" {event.description}",
                "engine-config -s AffinityRulesEnforcementManagerEnabled=false and restart"
                ' ovirt-engine, or set [enforcer] mode = "observe"',
            )
            return


def examine_permissions(
    connection: EngineConnection, root: Root, clusters: Sequence[Cluster]
) -> Iterator[FoundProblem]:
    """Look whether our user itself, not a group of it, may do what the enforcer does."""
    user = root.user_id
    if user is None:
        names = connection.read("/users", parsing.user_names)
        user = names.get(root.user_name) or names.get(connection.settings.username or "")
    if user is None:
        raise UserError(f"the engine does not say which user {connection.settings.username} is")
    held = connection.read(f"/users/{user}/permissions", parsing.permissions)
    roles = connection.read("/roles", parsing.roles, follow="permits")
    permits = {role: known.permits for role, known in roles.items()}
    if not any(permission.on is None and _REPORT in permits.get(permission.role, ()) for permission in held):
        yield problem(
            "no_permit",
            f"{connection.settings.username} itself has no permit {_REPORT} on the system:"
            " ovirt-enforcer cannot report to the engine's administrators which groups a VM has lost",
            "give the user the role ExternalEventsCreator on the system",
        )
    places = {permission.on for permission in held if _MIGRATE in permits.get(permission.role, ())}
    if None in places:
        return
    for cluster in clusters:
        if not places & {("cluster", cluster.id), ("data_center", cluster.data_center or "")}:
            yield problem(
                "no_permit",
                f"{connection.settings.username} itself has no permit {_MIGRATE} on cluster"
                f" {cluster.name}: ovirt-enforcer cannot repair it",
                "give the user a role with that permit on the cluster (docs/configuration.md)",
                cluster=cluster,
            )


# -- Whether the engine's clock and ours show the same time: events are judged by their age.
_SKEW_SECONDS = 10.0


def read_root(connection: EngineConnection) -> tuple[Root, float]:
    """The engine's root, and by how many seconds its clock is ahead; one that reports no time has ours."""
    began = time.time()
    root = connection.read("", parsing.parse_root)
    here = (began + time.time()) / 2
    return root, root.time.timestamp() - here if root.time else 0.0


def examine_clock(ahead: float) -> Iterator[FoundProblem]:
    if abs(ahead) > _SKEW_SECONDS:
        yield problem(
            "clocks_differ",
            f"the engine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this one:"
            " events are taken for older or younger than they are",
            "let both machines keep their time by NTP (chronyc tracking)",
        )


# -- What can be wrong between engine and proxy: units that one does not know as the other does.
#: The engine could not reach the proxy.
UNREACHABLE = EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY
#: The engine has started: the first is written by its notifier alone, the other where it enforces affinity
#: groups.
STARTED = (EventCode.VDC_START, EventCode.AFFINITY_RULES_ENFORCEMENT_MANAGER_START)

_LATELY_SECONDS = 600.0

_RESTART = "systemctl restart ovirt-engine: it asks the proxy for its units only when it starts"
RELOAD = f"see with ovirt-scheduler-proxy check why they do not load, then {_RESTART}"
#: Why no unit is enabled, unless the proxy was not reached since the engine started.
_NOT_COMPARED = (
    "its external scheduler is off, the proxy had no plugins when the engine started, or the engine"
    " compared them before its own start was complete"
)
_SWITCH_ON = (
    "engine-config -s ExternalSchedulerEnabled=true, check engine-config -g ExternalSchedulerServiceURL,"
    f" start ovirt-scheduler-proxy, then {_RESTART}"
)


def examine_units(
    units: Mapping[str, PolicyUnit], events: Sequence[EngineEvent], answered: float | None = None
) -> Iterator[FoundProblem]:
    """Look whether the engine has our units; `answered` is when the proxy last answered its discovery."""
    known = {(unit.type, unit.name): unit for unit in units.values() if not unit.internal}
    usual = [(rule.kind, rule.name) for rule in usual_units()]
    missing = [name for kind, name in usual if (kind, name) not in known]
    disabled = [name for key in usual if key in known and not known[key].enabled for name in key[1:]]
    lost = _newest(events, UNREACHABLE)
    if disabled and answered and answered > (lost or 0.0):
        yield problem(
            "units_lost_at_start",
            "the engine has disabled policy units that the proxy reported to it at"
            f" {utc_text(answered)}: {', '.join(disabled)}; it compared them before its own start was"
            " complete, and VMs are placed without them",
            "systemctl restart ovirt-engine; the proxy prevents it, unless [calls] discovery_seconds"
            " is 0 there",
        )
        return
    if len(missing) + len(disabled) == len(usual):
        state = "knows none" if not disabled else "has disabled all"
        cause, started = _NOT_COMPARED, _newest(events, *STARTED)
        if lost is not None and not (started is not None and lost < started):
            cause = (
                f"it could not reach the proxy at {utc_text(lost)}: the URL is wrong, or the proxy was away"
            )
        yield problem("no_units", f"the engine {state} of our policy units: {cause}", _SWITCH_ON)
        return
    if missing:
        yield problem(
            "unknown_units",
            f"the engine does not know these policy units: {', '.join(missing)}",
            "put our plugins into the proxy's folder (ovirt-scheduler-proxy check shows them),"
            f" then {_RESTART}",
        )
    if disabled:
        yield problem(
            "disabled_units",
            f"the engine has disabled policy units that the proxy did not offer: {', '.join(disabled)}",
            RELOAD,
        )


def examine_connection(events: Sequence[EngineEvent], now: float) -> Iterator[FoundProblem]:
    """Look whether the engine missed the proxy lately."""
    lost = _newest(events, UNREACHABLE)
    if lost is not None and now - lost < _LATELY_SECONDS:
        yield problem(
            "proxy_not_reached",
            f"the engine could not reach the proxy at {utc_text(lost)}: what it placed then it placed"
            " without our units",
            "is ovirt-scheduler-proxy up, and ExternalSchedulerServiceURL right? The engine allows"
            " 100 ms to connect",
        )


def examine_proxy(url: str, units: Mapping[str, PolicyUnit]) -> Iterator[FoundProblem]:
    """Ask the proxy for its units as the engine does, and compare. Raises `UserError` as `discover`."""
    try:
        offered = discover(url)
    except NoDiscovery as error:
        why = redacted(str(error), url)
        yield problem(
            "proxy_not_reached",
            f"the proxy at {shown(url)} does not answer as a scheduler proxy: {why}",
            "start ovirt-scheduler-proxy, or correct --proxy and ExternalSchedulerServiceURL",
        )
        return
    known = {(unit.type, unit.name): unit for unit in units.values() if not unit.internal}
    lacking = [rule.name for rule in usual_units() if (rule.kind, rule.name) not in offered]
    if lacking:
        yield problem(
            "units_not_offered",
            f"the proxy at {shown(url)} does not offer: {', '.join(lacking)}",
            "see with ovirt-scheduler-proxy check which plugins it loads, and why not these",
        )
    # One finding for each way in which units differ: all of a kind have one cause.
    unknown = [name for kind, name in offered if (kind, name) not in known]
    disabled = [name for kind, name in offered if (kind, name) in known and not known[kind, name].enabled]
    others = [
        f"{key[1]} ({', '.join(sorted(dict(known[key].properties.items() ^ properties.items())))})"
        for key, properties in offered.items()
        if key in known and known[key].enabled and known[key].properties != properties
    ]
    for what, some in (
        ("the engine does not know units that the proxy offers", unknown),
        ("the engine has disabled units that the proxy offers", disabled),
        ("units have other properties in the engine than in the proxy", others),
    ):
        if some:
            yield problem("unit_differs", f"{what}: {', '.join(some)}", _RESTART)


def _newest(events: Sequence[EngineEvent], *codes: int) -> float | None:
    return max((event.time for event in events if event.code in codes), default=None)
