"""Finds what bears a tag: two searches, where reading the tags of all would take a look-up for each."""

from __future__ import annotations

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import hosts, vms
from ovirt_placement.engine.reading.requests import whole_answers


def tagged_ids(connection: EngineConnection, tag: str) -> frozenset[str]:
    """Return the ids of the VMs and hosts that bear this tag; `*` in it stands for anything.

    Raises what `EngineConnection.get` raises.
    """
    with whole_answers(connection):
        found_vms = vms.read(connection.get("/vms", search=f"tag={tag}"))
        found_hosts = hosts.read(connection.get("/hosts", search=f"tag={tag}"))
        return frozenset(one.id for one in found_vms).union(one.id for one in found_hosts)
