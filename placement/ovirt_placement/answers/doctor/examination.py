"""Examines engine, proxy, policies and machine one after another, and reports what is not right."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from ovirt_placement.answers import doctor as engine
from ovirt_placement.answers.doctor import FoundProblem, NotInUse, machine, policies, problem
from ovirt_placement.answers.doctor.policies import InUse
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.proxy import configuration_of, discovery_answered_at, url_of
from ovirt_placement.answers.question import Parameter, Reads, Route, question
from ovirt_placement.answers.setup import KEY_WEIGHT, Units
from ovirt_placement.answers.status import EnforcementRecord, enforcement
from ovirt_placement.config import Config
from ovirt_placement.engine import events as engine_events
from ovirt_placement.engine import policies as engine_policies
from ovirt_placement.engine import topology
from ovirt_placement.engine.connection.client import EngineConnection, connect
from ovirt_placement.engine.events import EngineEvent, add_event, custom_id
from ovirt_placement.engine.users import Root
from ovirt_placement.model import Cluster, Snapshot
from ovirt_service import identity
from ovirt_service.errors import UserError

_NEWEST_EVENTS = 1000


class NotExamined(str):
    """What could not be looked at, and why."""

    __slots__ = ()


Result = FoundProblem | NotInUse | NotExamined
_Subject = TypeVar("_Subject")
#: What is looked at, and how.
Checks = tuple[tuple[str, Callable[[_Subject], Iterable[Result]]], ...]


@dataclass
class Seen:
    """What has been read, once for all checks."""

    connection: EngineConnection
    configuration: Config
    root: Root
    #: By how many seconds the engine's clock is ahead of ours.
    ahead: float
    snapshot: Snapshot
    units: Units
    events: Sequence[EngineEvent]
    enforcer: EnforcementRecord
    #: Where the proxy is, whether that was said on the command line, and why it is not known where it is.
    proxy: str | None
    proxy_named: bool
    proxy_error: str
    #: Policies by cluster, as far as they could be read.
    policies: dict[str, InUse] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """By the engine's clock."""
        return time.time() + self.ahead

    @property
    def enforcing(self) -> bool:
        return "enforce" in {self.enforcer.mode, self.enforcer.configured_mode}


def _units(seen: Seen) -> Iterator[FoundProblem]:
    answered = None if seen.proxy is None else discovery_answered_at(seen.proxy)
    return engine.examine_units(seen.units, seen.events, answered)


def _proxy(seen: Seen) -> Iterator[FoundProblem]:
    if seen.proxy is None:
        raise UserError(seen.proxy_error)
    return engine.examine_proxy(seen.proxy, seen.units)


def _record(seen: Seen) -> Iterator[Result]:
    """Only of a proxy of this machine."""
    if seen.proxy is not None and not seen.proxy_named:
        yield from machine.examine_record(seen.configuration.engine.name)


def _permissions(seen: Seen) -> Iterator[FoundProblem]:
    if seen.enforcing:
        yield from engine.examine_permissions(seen.connection, seen.root, seen.snapshot.clusters)


def _policies(seen: Seen) -> Iterator[FoundProblem]:
    """The policies that clusters use, and the rules of the clusters by them; note which those are."""
    heads = {head.id: head for head in engine_policies.read_heads(seen.connection)}
    examined: dict[str, InUse] = {}
    by_keys: list[Cluster] = []
    for user in engine_policies.read_users(seen.connection):
        if user.policy not in heads:
            continue
        if user.policy not in examined:
            content = engine_policies.read_content(seen.connection, heads[user.policy])
            examined[user.policy] = policies.in_use(content, seen.units)
            yield from policies.examine_policy(examined[user.policy])
        policy = examined[user.policy]
        yield from policies.examine_properties(user, policy)
        if user.id in seen.snapshot.cluster_by_id:
            cluster = seen.snapshot.cluster_by_id[user.id]
            seen.policies[cluster.id] = policy
            yield from policies.examine_rules(seen.snapshot, cluster, policy)
            yield from policies.examine_admission(cluster, policy)
            yield from policies.examine_keys(seen.snapshot, cluster, policy)
            if policy.our_weights.get(KEY_WEIGHT, 0) > 0:
                by_keys.append(cluster)
    yield from policies.examine_property(seen.connection, by_keys)


#: What only root may look at, then what the services' user may, each with what is looked at.
_AS_CALLER: Checks[Config] = (
    ("the system", lambda config: machine.examine_system(config, machine.ROOT)),
    ("the services' users", machine.examine_services),
)
_HERE: Checks[Config] = (
    ("the configuration", machine.examine_sections),
    ("this machine", machine.examine_inventory),
    ("this machine", machine.examine_store),
)
_CHECKS: Checks[Seen] = (
    ("policy units", _units),
    ("the proxy's connection", lambda seen: engine.examine_connection(seen.events, seen.now)),
    ("the proxy", _proxy),
    ("the proxy's record of decisions", _record),
    ("scheduling policies", _policies),
    ("our units", lambda seen: policies.unused_units(seen.snapshot, seen.policies)),
    (
        "the enforcer",
        lambda seen: policies.idle_enforcer(seen.enforcer, seen.configuration.unit("ovirt-enforcer")),
    ),
    ("placement keys", lambda seen: policies.examine_mistakes(seen.snapshot)),
    ("names", lambda seen: machine.examine_names(seen.connection, seen.configuration, seen.snapshot)),
    ("placement rules", lambda seen: policies.examine_placement_rules(seen.connection, seen.snapshot)),
    (
        "the engine's enforcement",
        lambda seen: engine.examine_enforcement(seen.enforcing, seen.events, seen.now),
    ),
    ("permissions", _permissions),
)


def _checked(checks: Checks[_Subject], subject: _Subject) -> Iterator[Result]:
    """Look at one thing after another; what keeps us from one does not keep us from the next."""
    for what, look in checks:
        try:
            yield from look(subject)
        except UserError as error:
            yield NotExamined(f"{what}: {error}")


def _examine_engine(
    connection: EngineConnection, configuration: Config, named: str | None, report: bool
) -> Iterator[Result]:
    root, ahead = engine.read_root(connection)
    yield from engine.examine_version(root)
    yield from engine.examine_clock(ahead)
    snapshot = machine.with_stored_keys(topology.read_snapshot(connection), configuration)
    name = configuration.engine.name
    error = f"there is no {configuration_of(name)} here; name it with --proxy URL"
    try:
        proxy = named or url_of(name)
    except UserError as unreadable:
        proxy, error = None, str(unreadable)
    seen = Seen(
        connection=connection,
        configuration=configuration,
        root=root,
        ahead=ahead,
        snapshot=snapshot,
        units=Units(engine_policies.read_units(connection)),
        events=engine_events.read_events(connection, at_most=_NEWEST_EVENTS),
        enforcer=enforcement(configuration, snapshot),
        proxy=proxy,
        proxy_named=named is not None,
        proxy_error=error,
    )
    found = tuple(_checked(_CHECKS, seen))
    yield from found
    if report:
        yield from _report(connection, found, root)


def _report(connection: EngineConnection, found: Sequence[Result], root: Root) -> Iterator[FoundProblem]:
    """Report to the engine rules that mean nothing: one event a cluster, the same again only next day."""
    day = root.time[:10] or datetime.now(UTC).strftime("%Y-%m-%d")
    by_cluster: dict[str, list[str]] = {}
    for one in found:
        if isinstance(one, FoundProblem) and one.rule and one.cluster is not None:
            by_cluster.setdefault(one.cluster.id, []).append(f"{one.sentence}. Remedy: {one.remedy}.")
    for cluster, texts in by_cluster.items():
        text = " ".join(texts)
        try:
            add_event(
                connection,
                number=custom_id(day, cluster, text),
                severity="warning",
                description=text,
                cluster=cluster,
            )
        except UserError as error:
            yield problem(
                "not_reported", f"no event was sent to the engine: {error}", "give the user that role"
            )


class DoctorDocument(Document, frozen=True, kw_only=True, tag="doctor"):
    """What is not right with engine, proxy, policies and machine."""

    findings: tuple[FoundProblem, ...]
    #: What could not be looked at, and why.
    not_examined: tuple[str, ...]
    #: Parts of the product that are not at work here, though nothing is wrong with them.
    not_in_use: tuple[str, ...]


@question(
    "doctor",
    "what is not right, and what to do about it",
    """\
Check the engine, the proxy, the scheduling policies and this machine, and report each problem with its
remedy. See docs/doctor.md. The exit status is 0 if no problem was found, 1 if one was, 2 if the
configuration is at fault.
""",
    examples="  ovirt-placement doctor\n",
    text=lambda answer, _: _doctor_lines(answer),
    status=lambda answer, _: int(bool(answer.findings)),
    reads=Reads.CONFIGURATION,
    routes=(Route("/doctor", "what was not right when it was last examined"),),
    ansible="say whether all of ovirt-placement works",
)
def doctor(
    configuration: Config,
    proxy: Annotated[
        str | None,
        Parameter(help="the scheduler proxy's address; else as configured on this machine", metavar="URL"),
    ] = None,
    *,
    report: Annotated[
        bool,
        Parameter(
            help="report rules without meaning as events of the engine, one a day and cluster",
            option="--event",
        ),
    ] = False,
) -> DoctorDocument:
    """Examine all; the units of the `proxy` at this URL, too.

    With `report`, the engine gets an event for rules that mean nothing. Raises `UserError` if the
    configuration does not say where the engine is.
    """
    as_caller = tuple(_checked(_AS_CALLER, configuration))
    identity.become_owner(configuration.folders, configuration.files)
    with connect(configuration.engine) as connection:
        found = [*_checked(_HERE, configuration), *as_caller]
        try:
            found.extend(_examine_engine(connection, configuration, proxy, report))
        except UserError as error:
            repair = "repair that first: the rest depends on the engine's answers"
            found.append(problem("engine_fails", str(error), repair))
    return DoctorDocument(
        findings=tuple(one for one in found if isinstance(one, FoundProblem)),
        not_examined=tuple(str(one) for one in found if isinstance(one, NotExamined)),
        not_in_use=tuple(str(one) for one in found if isinstance(one, NotInUse)),
    )


# -- in words
def _doctor_lines(answer: DoctorDocument) -> Iterator[str]:
    """Each finding with its remedy, and what could not be looked at."""
    for finding in answer.findings:
        yield f"- {finding.sentence}"
        yield f"  -> {finding.remedy}"
    yield from (f"- not examined: {text}" for text in answer.not_examined)
    yield from (f"- not in use: {text}" for text in answer.not_in_use)
    if not answer.findings:
        yield _nothing_found(answer)


def _nothing_found(answer: DoctorDocument) -> str:
    """What may be concluded where there is no finding: no more than was looked at."""
    if answer.not_examined:
        return "No problem was found in what was examined."
    looked_at = "engine, scheduling policies, proxy, inventory, store, configuration and this machine"
    return f"No problem was found: {looked_at} were examined."
