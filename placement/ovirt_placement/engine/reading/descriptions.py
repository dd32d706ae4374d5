"""Reads the descriptions of affinity groups, which no rule needs and snapshots lack."""

from __future__ import annotations

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import xml


def read_descriptions(connection: EngineConnection, cluster: str) -> dict[str, str]:
    """The descriptions of a cluster's groups, by id. Raises what `EngineConnection.get` raises."""
    content = connection.get(f"/clusters/{cluster}/affinitygroups")
    return {
        xml.identity(element): xml.text(xml.children(element, "description").get("description"))
        for element in xml.elements(content, "affinity_group")
    }
