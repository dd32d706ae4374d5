"""`ovirt-placement doctor`: what is not right, in plain words, and what to do about it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from ovirt_placement import config
from ovirt_placement.commands.arguments import add_command, add_config
from ovirt_placement.commands.finding import Finding
from ovirt_placement.commands.question import show_json
from ovirt_placement.config import Config
from ovirt_placement.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.commands.doctor_policies import InUse
    from ovirt_placement.engine.connection import EngineConnection
    from ovirt_placement.engine.events import Event
    from ovirt_placement.engine.parsing.policies import Unit
    from ovirt_placement.engine.parsing.users import Root
    from ovirt_placement.model import Cluster, Snapshot

DESCRIPTION = """\
Look for what is not right with the engine, the proxy, the scheduling policies and this machine, and say of
each thing what to do about it. Nothing is changed, but for the event that --event adds. See docs/doctor.md.
The exit status is 0 if all is well, 1 if something is not, 2 if the configuration is at fault.
"""

_NEWEST_EVENTS = 1000


class _Enforcer(msgspec.Struct, frozen=True):
    """Of the enforcer's section, what matters here."""

    mode: str = "dry_run"


class _Examination:
    """What has been found so far, and what could not be looked at."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.not_examined: list[str] = []

    def add(self, what: str, examine: Callable[[], Iterable[Finding]]) -> None:
        """Look at one thing; what keeps us from it does not keep us from the next."""
        try:
            self.findings.extend(examine())
        except UserError as error:
            self.not_examined.append(f"{what}: {error}")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(subparsers, "doctor", "what is not right, and what to do about it", DESCRIPTION, run)
    parser.add_argument(
        "--proxy", metavar="URL", help="where the scheduler proxy listens: ask it for its units, and compare"
    )
    parser.add_argument(
        "--event",
        action="store_true",
        help="tell the engine of rules that mean nothing, by an event a day and cluster",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    # The SDK and SQLAlchemy take long to load: not for `--help`.
    from ovirt_placement.commands.doctor_machine import examine_machine
    from ovirt_placement.engine.connection import connect

    configuration = config.load(args.config)
    examination = _Examination()
    with connect(configuration.engine) as connection:
        examination.add("this machine", lambda: examine_machine(configuration))
        try:
            _examine_engine(connection, args, configuration, examination)
        except UserError as error:
            examination.findings.append(
                Finding(what=str(error), remedy="mend that first: the rest depends on the engine's answers")
            )
    _show(args, examination)
    return int(bool(examination.findings))


def _examine_engine(
    connection: EngineConnection, args: argparse.Namespace, configuration: Config, examination: _Examination
) -> None:
    from ovirt_placement.commands import doctor_engine, doctor_keys, doctor_machine, doctor_units
    from ovirt_placement.engine import events as engine_events
    from ovirt_placement.engine import policy_setup, reader
    from ovirt_placement.engine.parsing import users

    began = time.time()
    root = users.root(connection.get(""))
    here = (began + time.time()) / 2
    now = datetime.fromisoformat(root.time).timestamp() if root.time else here
    examination.findings.extend(doctor_engine.examine_version(root))
    examination.findings.extend(doctor_engine.examine_clock(root, here))
    snapshot = doctor_machine.with_stored_keys(reader.read_snapshot(connection), configuration)
    units = policy_setup.read_units(connection)
    events: Sequence[Event] = engine_events.read_events(connection, at_most=_NEWEST_EVENTS)
    examination.findings.extend(doctor_units.examine_units(units, events))
    examination.findings.extend(doctor_units.examine_connection(events, now))
    if args.proxy is not None:
        examination.findings.extend(doctor_units.examine_proxy(args.proxy, units))
    examination.add("scheduling policies", lambda: _policies(connection, snapshot, units))
    examination.findings.extend(doctor_keys.examine_mistakes(snapshot))
    enforcing = configuration.section("enforcer", _Enforcer).mode == "enforce"
    examination.findings.extend(doctor_engine.examine_enforcement(enforcing, events, now))
    if enforcing:
        examination.add(
            "permissions", lambda: doctor_engine.examine_permissions(connection, root, snapshot.clusters)
        )
    if args.event:
        examination.findings.extend(_tell(connection, examination.findings, root))


def _policies(connection: EngineConnection, snapshot: Snapshot, units: dict[str, Unit]) -> Iterator[Finding]:
    """Examine the policies that clusters use, and the rules of the clusters by them."""
    from ovirt_placement.commands import doctor_keys, doctor_policies
    from ovirt_placement.engine import policy_setup

    heads = {head.id: head for head in policy_setup.read_heads(connection)}
    examined: dict[str, InUse] = {}
    by_keys: list[Cluster] = []
    for user in policy_setup.read_users(connection):
        if user.policy not in heads:
            continue
        if user.policy not in examined:
            content = policy_setup.read_content(connection, heads[user.policy])
            examined[user.policy] = doctor_policies.in_use(content, units)
            yield from doctor_policies.examine_policy(examined[user.policy])
        yield from doctor_policies.examine_properties(user, examined[user.policy])
        if user.id in snapshot.cluster_by_id:
            cluster = snapshot.cluster_by_id[user.id]
            yield from doctor_policies.examine_rules(snapshot, cluster, examined[user.policy])
            yield from doctor_keys.examine_keys(snapshot, cluster, examined[user.policy])
            if doctor_keys.weighs_by_keys(examined[user.policy]):
                by_keys.append(cluster)
    yield from doctor_keys.examine_property(connection, by_keys)


def _tell(connection: EngineConnection, findings: Sequence[Finding], root: Root) -> Iterator[Finding]:
    """Tell the engine of rules that mean nothing: one event a cluster, and the same again only next day."""
    from ovirt_placement.engine.external_events import add_event, custom_id

    day = root.time[:10] or datetime.now(UTC).strftime("%Y-%m-%d")
    by_cluster: dict[str, list[str]] = {}
    for finding in findings:
        if finding.rule and finding.cluster is not None:
            by_cluster.setdefault(finding.cluster, []).append(f"{finding.what}. Remedy: {finding.remedy}.")
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
            yield Finding(what=f"the engine was not told: {error}", remedy="give the user that role")


def _show(args: argparse.Namespace, examination: _Examination) -> None:
    if args.json:
        show_json({"findings": examination.findings, "not_examined": examination.not_examined})
        return
    for finding in examination.findings:
        print(f"- {finding.what}\n  -> {finding.remedy}")
    for text in examination.not_examined:
        print(f"- not examined: {text}")
    if not examination.findings:
        print("All is well." if not examination.not_examined else "Nothing else is wrong.")
