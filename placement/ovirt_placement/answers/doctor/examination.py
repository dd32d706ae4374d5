"""Examines engine, proxy, policies and machine one after another, and reports what is not right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from ovirt_placement.answers.doctor import engine, machine, platform, policies
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.doctor.policies import InUse
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.question import Parameter, Reads, Route, question
from ovirt_placement.answers.status.enforcement import enforcement
from ovirt_placement.answers.status.proxy import configuration_of, discovery_answered_at, url_of
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection, connect
from ovirt_placement.engine.parsing import users
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.parsing.users import Root
from ovirt_placement.engine.reading import events as engine_events
from ovirt_placement.engine.reading import topology
from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_placement.engine.writing import policies as engine_policies
from ovirt_placement.engine.writing.events import add_event, custom_id
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_service import identity
from ovirt_service.errors import UserError

# -- Looks at engine, proxy, policies and machine one after another, and gathers what is not right.


_NEWEST_EVENTS = 1000
_SIMULATE = (
    "the enforcer migrates VMs: run ovirt-enforcer simulate-policy to see whether it, the engine and the"
    " balance of load undo each other's work"
)


class Examination:
    """What has been found so far, and what could not be looked at."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.not_examined: list[str] = []
        #: Parts of the product that are not at work, with what would put them to work.
        self.not_in_use: list[str] = []
        #: What is worth a look, though nothing is known to be wrong.
        self.hints: list[str] = []

    def add(self, what: str, examine: Callable[[], Iterable[Finding]]) -> None:
        """Look at one thing; what keeps us from it does not keep us from the next."""
        try:
            self.findings.extend(examine())
        except UserError as error:
            self.not_examined.append(f"{what}: {error}")


def examine(configuration: Config, proxy: str | None = None, *, report: bool = False) -> Examination:
    """Examine all; the units of the `proxy` at this URL, too.

    With `report`, the engine is notified of rules that mean nothing, by an event. Raises `UserError` if the
    configuration does not say where the engine is.
    """
    examination, as_caller = Examination(), Examination()
    as_caller.add("the system", lambda: platform.examine_platform(configuration, platform.ROOT))
    as_caller.add("hardening", lambda: platform.examine_hardening(configuration, platform.ROOT))
    as_caller.add("the services' users", lambda: platform.examine_services(configuration))
    identity.become_owner(configuration.folders, configuration.files)
    with connect(configuration.engine) as connection:
        examination.findings.extend(machine.examine_sections(configuration))
        examination.add("this machine", lambda: machine.examine_machine(configuration))
        examination.findings.extend(as_caller.findings)
        examination.not_examined.extend(as_caller.not_examined)
        try:
            _examine_engine(connection, configuration, proxy, examination, report=report)
        except UserError as error:
            examination.findings.append(
                Finding(
                    kind="engine_fails",
                    what=str(error),
                    remedy="repair that first: the rest depends on the engine's answers",
                )
            )
    return examination


def _examine_engine(
    connection: EngineConnection,
    configuration: Config,
    proxy: str | None,
    examination: Examination,
    *,
    report: bool,
) -> None:
    def read_root() -> Root:
        return users.root(connection.get(""))

    root, clocks = engine.read_clocks(read_root)
    now = clocks.engine
    examination.findings.extend(engine.examine_version(root))
    if clocks.differs:
        _examine_clock(clocks, engine.read_clocks_again(read_root, clocks), examination)
    snapshot = machine.with_stored_keys(topology.read_snapshot(connection), configuration)
    known = engine_policies.read_units(connection)
    events: Sequence[EngineEvent] = engine_events.read_events(connection, at_most=_NEWEST_EVENTS)
    answered = _discovery_answered(configuration, proxy)
    examination.findings.extend(engine.examine_units(known, events, answered))
    examination.findings.extend(engine.examine_connection(events, now))
    _examine_proxy(configuration, proxy, known, examination)
    policy_of: dict[str, InUse] = {}
    examination.add("scheduling policies", lambda: _examine_policies(connection, snapshot, known, policy_of))
    if (there := machine.default_keys(configuration)) is not None:
        examination.hints.extend(policies.without_special_keys(snapshot, policy_of, there))
    examination.not_in_use.extend(policies.unused_units(snapshot, policy_of))
    enforcer = enforcement(configuration, snapshot)
    examination.not_in_use.extend(policies.idle_enforcer(enforcer, configuration.unit("ovirt-enforcer")))
    examination.findings.extend(policies.examine_mistakes(snapshot))
    examination.add("names", lambda: machine.examine_names(connection, configuration, snapshot))
    examination.add("placement rules", lambda: machine.examine_rules(connection, snapshot))
    enforcing = "enforce" in {enforcer.mode, enforcer.configured_mode}
    examination.findings.extend(engine.examine_enforcement(enforcing, events, now))
    if enforcing:
        examination.hints.append(_SIMULATE)
        examination.add(
            "permissions", lambda: engine.examine_permissions(connection, root, snapshot.clusters)
        )
    if report:
        examination.findings.extend(_report(connection, examination.findings, root))


def _examine_clock(first: engine.ClockReading, second: engine.ClockReading, examination: Examination) -> None:
    if engine.is_simulated(first, second):
        examination.hints.append(engine.simulated_hint(first, second))
    else:
        examination.findings.append(engine.clock_finding(first))


def _discovery_answered(configuration: Config, named: str | None) -> float | None:
    """When the proxy, as far as there is one to ask, last answered the engine's discovery."""
    try:
        url = named or url_of(configuration.engine.name)
    except UserError:
        return None
    return None if url is None else discovery_answered_at(url)


def _examine_proxy(
    configuration: Config, named: str | None, known: dict[str, PolicyUnit], examination: Examination
) -> None:
    """Ask the proxy that is named, else that of this machine."""
    try:
        url = named or url_of(configuration.engine.name)
    except UserError as error:
        examination.not_examined.append(f"the proxy: {error}")
        return
    if url is None:
        file = configuration_of(configuration.engine.name)
        examination.not_examined.append(f"the proxy: there is no {file} here; name it with --proxy URL")
        return
    examination.add("the proxy", lambda: engine.examine_proxy(url, known))
    if named is None:
        name = configuration.engine.name
        examination.add("the proxy's record of decisions", lambda: machine.examine_record(name))
        examination.not_in_use.extend(machine.unrecorded(name))


def _examine_policies(
    connection: EngineConnection,
    snapshot: Snapshot,
    known: dict[str, PolicyUnit],
    policy_of: dict[str, InUse],
) -> Iterator[Finding]:
    """Examine the policies that clusters use, and the rules of the clusters by them; note which those are."""
    heads = {head.id: head for head in engine_policies.read_heads(connection)}
    examined: dict[str, InUse] = {}
    by_keys: list[Cluster] = []
    for user in engine_policies.read_users(connection):
        if user.policy not in heads:
            continue
        if user.policy not in examined:
            content = engine_policies.read_content(connection, heads[user.policy])
            examined[user.policy] = policies.in_use(content, known)
            yield from policies.examine_policy(examined[user.policy])
        yield from policies.examine_properties(user, examined[user.policy])
        if user.id in snapshot.cluster_by_id:
            cluster = snapshot.cluster_by_id[user.id]
            policy_of[cluster.id] = examined[user.policy]
            yield from policies.examine_rules(snapshot, cluster, examined[user.policy])
            yield from policies.examine_admission(cluster, examined[user.policy])
            yield from policies.examine_keys(snapshot, cluster, examined[user.policy])
            if policies.weighs_by_keys(examined[user.policy]):
                by_keys.append(cluster)
    yield from policies.examine_property(connection, by_keys)


def _report(connection: EngineConnection, findings: Sequence[Finding], root: Root) -> Iterator[Finding]:
    """Report to the engine rules that mean nothing: one event a cluster, the same again only next day."""
    day = root.time[:10] or datetime.now(UTC).strftime("%Y-%m-%d")
    by_cluster: dict[str, list[str]] = {}
    for finding in findings:
        if finding.rule and finding.cluster is not None:
            by_cluster.setdefault(finding.cluster.id, []).append(f"{finding.what}. Remedy: {finding.remedy}.")
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
            yield Finding(
                kind="not_reported",
                what=f"no event was sent to the engine: {error}",
                remedy="give the user that role",
            )


# -- What is not right with engine, proxy, policies and machine.
class FoundProblem(Record, frozen=True, omit_defaults=False):
    """One thing that is not right, and what would repair it."""

    kind: str
    sentence: str
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None
    #: Whether a rule means nothing for it: `--event` reports such findings to the engine.
    rule: bool


class DoctorDocument(Document, frozen=True, kw_only=True, tag="doctor"):
    """What is not right with engine, proxy, policies and machine."""

    findings: tuple[FoundProblem, ...]
    #: What could not be looked at, and why.
    not_examined: tuple[str, ...]
    #: Parts of the product that are not at work here, though nothing is wrong with them.
    not_in_use: tuple[str, ...]
    #: What is worth a look, though nothing is known to be wrong.
    hints: tuple[str, ...]


@question(
    "doctor",
    "what is not right, and what to do about it",
    """\
Check the engine, the proxy, the scheduling policies and this machine, and report each problem with its
remedy. See docs/doctor.md. The exit status is 0 if no problem was found, 1 if one was, 2 if the
configuration is at fault.
""",
    examples="""\
  ovirt-placement doctor
""",
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
    found = examine(configuration, proxy, report=report)
    return DoctorDocument(
        findings=tuple(
            FoundProblem(one.kind, one.what, one.remedy, one.cluster, one.rule) for one in found.findings
        ),
        not_examined=tuple(found.not_examined),
        not_in_use=tuple(found.not_in_use),
        hints=tuple(found.hints),
    )


# -- in words
def _doctor_lines(answer: DoctorDocument) -> Iterator[str]:
    """Each finding with its remedy, what could not be looked at, and hints."""
    for finding in answer.findings:
        yield f"- {finding.sentence}"
        yield f"  -> {finding.remedy}"
    yield from (f"- not examined: {text}" for text in answer.not_examined)
    yield from (f"- not in use: {text}" for text in answer.not_in_use)
    if not answer.findings:
        yield _nothing_found(answer)
    yield from (f"Hint: {text}." for text in answer.hints)


def _nothing_found(answer: DoctorDocument) -> str:
    """What may be concluded where there is no finding: no more than was looked at."""
    if answer.not_examined:
        return "No problem was found in what was examined."
    looked_at = "engine, scheduling policies, proxy, inventory, store, configuration and this machine"
    return f"No problem was found: {looked_at} were examined."
