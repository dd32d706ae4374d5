"""Examines engine, proxy, policies and machine one after another, and reports what is not right."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from ovirt_placement.answers import doctor as engine
from ovirt_placement.answers.doctor import FoundProblem, NotInUse, machine, policies, problem
from ovirt_placement.answers.doctor.policies import InUse
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.proxy import configuration_of, discovery_answered_at, url_of
from ovirt_placement.answers.question import Parameter, Reads, Route, question
from ovirt_placement.answers.setup import KEY_WEIGHT, Units
from ovirt_placement.answers.status import enforcement
from ovirt_placement.config import Config
from ovirt_placement.engine import events as engine_events
from ovirt_placement.engine import policies as engine_policies
from ovirt_placement.engine import topology
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import add_event, custom_id
from ovirt_placement.engine.users import Root
from ovirt_placement.model import Cluster, Snapshot
from ovirt_service import identity
from ovirt_service.errors import UserError

_NEWEST_EVENTS = 1000


class NotExamined(str):
    """What could not be looked at, and why."""

    __slots__ = ()


Result = FoundProblem | NotInUse | NotExamined
#: What is looked at, and how.
Checks = tuple[tuple[str, Callable[[], Iterable[Result]]], ...]


def _checked(checks: Checks) -> Iterator[Result]:
    """Look at one thing after another; what keeps us from one does not keep us from the next."""
    for what, check in checks:
        try:
            yield from check()
        except UserError as error:
            yield NotExamined(f"{what}: {error}")


def _examine_engine(
    connection: EngineConnection, configuration: Config, named: str | None, report: bool
) -> Iterator[Result]:
    """The proxy is `named` on the command line, or that of this machine."""
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
    units = Units(engine_policies.read_units(connection))
    events = engine_events.read_events(connection, at_most=_NEWEST_EVENTS)
    enforcer = enforcement(configuration, snapshot)
    enforcing = "enforce" in {enforcer.mode, enforcer.configured_mode}
    policy_of: dict[str, InUse] = {}

    def now() -> float:
        """By the engine's clock."""
        return time.time() + ahead

    def of_units() -> Iterable[Result]:
        return engine.examine_units(units, events, discovery_answered_at(proxy) if proxy else None)

    def of_proxy() -> Iterable[Result]:
        if proxy is None:
            raise UserError(error)
        return engine.examine_proxy(proxy, units)

    checks: Checks = (
        ("policy units", of_units),
        ("the proxy's connection", lambda: engine.examine_connection(events, now())),
        ("the proxy", of_proxy),
        (
            "the proxy's record of decisions",
            lambda: machine.examine_record(name) if proxy and not named else (),
        ),
        ("scheduling policies", lambda: _policies(connection, snapshot, units, policy_of)),
        ("our units", lambda: policies.unused_units(snapshot, policy_of)),
        ("the enforcer", lambda: policies.examine_enforcer(enforcer, configuration.unit("ovirt-enforcer"))),
        ("placement keys", lambda: policies.examine_mistakes(snapshot)),
        ("names", lambda: machine.examine_names(connection, configuration, snapshot)),
        ("placement rules", lambda: policies.examine_placement_rules(connection, snapshot)),
        ("the engine's enforcement", lambda: engine.examine_enforcement(enforcing, events, now())),
        (
            "permissions",
            lambda: engine.examine_permissions(connection, root, snapshot.clusters) if enforcing else (),
        ),
    )
    found = tuple(_checked(checks))
    yield from found
    if report:
        yield from _report(connection, found, root)


def _policies(
    connection: EngineConnection, snapshot: Snapshot, units: Units, policy_of: dict[str, InUse]
) -> Iterator[FoundProblem]:
    """The policies that clusters use, and the rules of the clusters by them; note which those are."""
    heads = {head.id: head for head in engine_policies.read_heads(connection)}
    examined: dict[str, InUse] = {}
    by_keys: list[Cluster] = []
    for user in engine_policies.read_users(connection):
        if user.policy not in heads:
            continue
        if user.policy not in examined:
            content = engine_policies.read_content(connection, heads[user.policy])
            examined[user.policy] = InUse(content, units)
            yield from policies.examine_policy(examined[user.policy])
        policy = examined[user.policy]
        yield from policies.examine_properties(user, policy)
        if user.id in snapshot.cluster_by_id:
            cluster = snapshot.cluster_by_id[user.id]
            policy_of[cluster.id] = policy
            yield from policies.examine_rules(snapshot, cluster, policy)
            yield from policies.examine_admission(cluster, policy)
            yield from policies.examine_keys(snapshot, cluster, policy)
            if policy.our_weights.get(KEY_WEIGHT, 0) > 0:
                by_keys.append(cluster)
    yield from policies.examine_property(connection, by_keys)


def _report(connection: EngineConnection, found: Sequence[Result], root: Root) -> Iterator[FoundProblem]:
    """Report to the engine rules that mean nothing: one event a cluster, the same again only next day."""
    day = f"{root.time or datetime.now(UTC):%Y-%m-%d}"
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
        str | None, Parameter("the scheduler proxy's address; else as configured on this machine", "URL")
    ] = None,
    *,
    report: Annotated[
        bool,
        Parameter(
            "report rules without meaning as events of the engine, one a day and cluster", option="--event"
        ),
    ] = False,
) -> DoctorDocument:
    """Examine all. With `report`, the engine gets an event for rules that mean nothing."""
    as_caller: Checks = (  # what only root may look at, then what the services' user may
        ("the system", lambda: machine.examine_system(configuration, machine.ROOT)),
        ("the services' users", lambda: machine.examine_services(configuration)),
    )
    here: Checks = (
        ("the configuration", lambda: machine.examine_sections(configuration)),
        ("this machine", lambda: machine.examine_inventory(configuration)),
        ("this machine", lambda: machine.examine_store(configuration)),
    )
    seen_by_caller = tuple(_checked(as_caller))
    identity.become_owner(configuration.folders, configuration.files)
    with EngineConnection(configuration.engine) as connection:
        found = [*_checked(here), *seen_by_caller]
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
    for finding in answer.findings:
        yield f"- {finding.sentence}"
        yield f"  -> {finding.remedy}"
    yield from (f"- not examined: {text}" for text in answer.not_examined)
    yield from (f"- not in use: {text}" for text in answer.not_in_use)
    # What may be concluded where there is no finding: no more than was looked at.
    if not answer.findings and answer.not_examined:
        yield "No problem was found in what was examined."
    elif not answer.findings:
        looked_at = "engine, scheduling policies, proxy, inventory, store, configuration and this machine"
        yield f"No problem was found: {looked_at} were examined."
