"""A simulated engine, and a connection to it; and VMs with an owner, a disk and an interface."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Disk, Network, Nic, Snapshot, VnicProfile
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Certificate, Server, serve
from tests import builders as build
from tests.placement.engine_server import connected

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@contextmanager
def simulated(state: Snapshot, **served: Any) -> Iterator[tuple[Engine, Server, EngineConnection]]:
    """And the server, which may be given a certificate or another password."""
    engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
    with closing(serve(engine, **served)) as server, connected(server.api_url) as connection:
        yield engine, server, connection


def owned(number: int) -> Snapshot:
    """This many VMs, each with an owner, a disk, and an interface with a profile."""
    vms = (
        build.vm(
            f"vm{at:04}",
            owner=f"user{at % 7}",
            disks=(Disk(id=f"disk{at}", bootable=True, profile="fast"),),
            nics=(Nic(id=f"nic{at}", name="nic1", vnic_profile="p"),),
        )
        for at in range(number)
    )
    return replace(
        build.snapshot(build.cluster(), build.cluster("other"), build.host("h"), *vms),
        networks=(Network(id="net", name="net"),),
        vnic_profiles=(VnicProfile(id="p", name="p", network="net"),),
    )


class Authority:
    """A CA, and what it issues, as files."""

    def __init__(self, folder: Path) -> None:
        self._ca, self._folder = trustme.CA(), folder
        self.file = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def certificate(self, *names: str, **properties: Any) -> Certificate:
        issued = self._ca.issue_cert(*names, **properties)
        files = (self._folder / "chain.pem", self._folder / "key.pem")
        issued.private_key_pem.write_to_path(files[1])
        files[0].write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return files
