"""Reads how busy hosts and VMs are, which the engine looks up for each of them by itself."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.requests import MEASURED, paged_vms, whole_answers
from ovirt_placement.engine.reading.topology import read_hosts
from ovirt_placement.model import Host, Vm


def measured_hosts(connection: EngineConnection, *, tags: bool = False) -> tuple[Host, ...]:
    """Read all hosts with their statistics, and perhaps tags; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        return read_hosts(connection, statistics=True, devices=tags)


def measured_vms(connection: EngineConnection) -> Iterator[Vm]:
    """Read VMs with their statistics, page by page, as `paged_vms` does."""
    return (found.vm for found in paged_vms(connection, ("statistics",), MEASURED))
