"""Examines placement rules: not in force, about what is not there, or not to be satisfied with all others."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.rules import rules_check_together
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.inventory.on_demand.searches import read_searches, searches_of
from ovirt_placement.model import Snapshot


def examine_rules(connection: EngineConnection, snapshot: Snapshot) -> Iterator[Finding]:
    """A finding for each mistake; tags are read, and searches asked, where a rule goes by them."""
    rules = snapshot.placement_rules
    if any(rule.names_vm_tags or rule.names_host_tags for rule in rules):
        snapshot = replace(read_snapshot(connection, devices=True), placement_rules=rules)
    snapshot = replace(snapshot, member_searches=read_searches(connection, searches_of(rules)))
    check = rules_check_together(snapshot)
    for one in check.problems:
        yield Finding(
            kind="placement_rule_mistaken",
            what=f"{one.rule.title}: {one.sentence}",
            remedy=f'ovirt-placement rules edit "{one.rule.name}", or what it names in the engine',
        )
    for each in check.contradictions:
        yield Finding(
            kind="placement_rules_contradict",
            what=sentence(each, whole=False),
            remedy="change or remove one of them: ovirt-placement rules edit",
        )
