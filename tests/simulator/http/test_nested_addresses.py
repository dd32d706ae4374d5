"""What is listed below something else has an address there too, which answers what its own address does."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request


@pytest.mark.parametrize(
    "above",
    [
        "datacenters/dc1/clusters",
        "datacenters/dc1/networks",
        "datacenters/dc1/storagedomains",
        "networks/net1/vnicprofiles",
        "vms/db1/affinitylabels",
        "hosts/host2/affinitylabels",
    ],
)
def test_an_entry_of_a_list_is_there_by_itself(server: Server, above: str) -> None:
    listed = request(f"{server.api_url}/{above}").xml
    assert len(listed) > 0
    for entry in listed:
        reply = request(f"{server.api_url}/{above}/{entry.get('id')}")
        assert (reply.status, reply.xml.tag, reply.xml.get("id")) == (200, entry.tag, entry.get("id"))
    assert request(f"{server.api_url}/{above}/none").status == 404


def test_vnic_profiles_come_and_go(sdk: Connection, engine: Engine) -> None:
    profiles = sdk.system_service().vnic_profiles_service()
    with pytest.raises(Error, match=r"network\.id"):
        profiles.add(types.VnicProfile(name="own"))
    profile = profiles.add(types.VnicProfile(name="own", network=types.Network(id="net1")))
    nics = sdk.system_service().vms_service().vm_service("web1").nics_service()
    nic = nics.add(types.Nic(name="eth9", vnic_profile=profile))
    with pytest.raises(Error, match="used by VM:  web1") as caught:
        profiles.profile_service(profile.id).remove()
    assert caught.value.code == 409
    nics.nic_service(nic.id).deactivate()
    nics.nic_service(nic.id).remove()
    profiles.profile_service(profile.id).remove()
    assert codes(engine)[0] == 1122
    assert codes(engine)[-1] == 1126
    assert profile.id not in {one.id for one in profiles.list()}
