"""Examines placement rules: not in force, about what is not there, or beyond what can be satisfied."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.rules.check import rules_check
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.model import Snapshot


def examine_rules(connection: EngineConnection, snapshot: Snapshot) -> Iterator[Finding]:
    """A finding for each mistake; tags are read where a rule goes by them."""
    rules = snapshot.placement_rules
    if any(rule.names_vm_tags or rule.names_host_tags for rule in rules):
        snapshot = replace(read_snapshot(connection, devices=True), placement_rules=rules)
    for one in rules_check(snapshot).problems:
        yield Finding(
            kind="placement_rule_mistaken",
            what=f"{one.rule.title}: {one.sentence}",
            remedy=f'ovirt-placement rules edit "{one.rule.name}", or what it names in the engine',
        )
