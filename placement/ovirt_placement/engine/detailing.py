"""Reads what hangs on all VMs, which the engine looks up for each of them by itself."""

from __future__ import annotations

from ovirt_placement.engine.connection import EngineConnection
from ovirt_placement.engine.details import Detail, followed
from ovirt_placement.engine.owners import inherited_permissions, with_owners
from ovirt_placement.engine.paging import paged_vms
from ovirt_placement.engine.reader import Networks, read_networks, whole_answers
from ovirt_placement.model import Vm


def detailed_vms(connection: EngineConnection, details: Detail) -> tuple[Vm, ...]:
    """Read VMs with these details, page by page, as `paged_vms` does.

    What the VMs inherit is read before and after them: it may change meanwhile.
    """
    with whole_answers(connection):
        before = inherited_permissions(connection) if Detail.OWNER in details else frozenset()
        return with_owners(connection, paged_vms(connection, followed(details)), before)


def networks(connection: EngineConnection) -> Networks:
    """Read all networks and vNIC profiles; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        return read_networks(connection)
