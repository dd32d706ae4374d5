"""Examines names that match nothing in the engine; those of placement rules are mistakes of these."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ovirt_placement.answers.configured import configured_names, unmatched_names
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.tagged import tagged_ids
from ovirt_placement.engine.reading.topology import read_hosts
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.admission.domains import listed_tags


def examine_names(
    connection: EngineConnection, configuration: Config, snapshot: Snapshot
) -> Iterator[Finding]:
    """A finding for each; the engine is asked for tags where the configuration has any."""
    configured = configured_names(configuration)
    words = [one.word for one in configured if one.kind == "tag" and one.word]
    tagged = frozenset[str]().union(*(tagged_ids(connection, word) for word in words)) if words else None
    policies = any(listed_tags(cluster.scheduling_properties) for cluster in snapshot.clusters)
    if policies or any(one.kind == "host tag" for one in configured):
        snapshot = replace(snapshot, hosts=read_hosts(connection, devices=True))
    for one in unmatched_names(snapshot, configured, tagged):
        if not one.in_rule:
            yield Finding(
                kind="name_matches_nothing",
                what=one.sentence,
                remedy="correct the name, or remove it: what it is to protect or to ask for is not heeded",
            )
