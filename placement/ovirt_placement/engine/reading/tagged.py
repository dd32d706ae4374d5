"""Finds the VMs that bear a tag: one search, where reading the tags of all would take a look-up for each."""

from __future__ import annotations

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import vms
from ovirt_placement.engine.reading.requests import whole_answers


def tagged_vms(connection: EngineConnection, tag: str) -> frozenset[str]:
    """Return the ids of the VMs that bear this tag; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        return frozenset(vm.id for vm in vms.read(connection.get("/vms", search=f"tag={tag}")))
