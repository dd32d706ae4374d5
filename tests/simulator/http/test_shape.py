"""What is rendered has the names, order and nesting of a real engine's XML, and nothing invented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from ovirt_simulator.http.server import Server
from tests.paths import RECORDING
from tests.simulator.http.plain import request

#: What a 4.5 engine's mappers (ClusterMapper, ...) show and the recorded 4.2 does not, or another state.
NEWER = {
    "vms": {
        "vm/cpu_pinning_policy",
        "vm/custom_properties",
        "vm/custom_properties/custom_property",
        "vm/custom_properties/custom_property/name",
        "vm/custom_properties/custom_property/value",
        "vm/auto_pinning_policy",
        "vm/instance_type",
        "vm/memory_policy/ballooning",
        "vm/migration/encrypted",
        "vm/placement_policy/hosts",
        "vm/placement_policy/hosts/host",
        "vm/status_detail",
        "vm/link[checkpoints]",
        "vm/link[mediateddevices]",
    },
    "hosts": {"host/link[cpuunits]", "host/ovn_configured", "host/reinstallation_required"},
    "clusters": {
        "cluster/bios_type",
        "cluster/data_center",
        "cluster/fips_mode",
        "cluster/migration/encrypted",
        "cluster/upgrade_in_progress",
        "cluster/upgrade_percent_complete",
        "cluster/vnc_encryption",
    },
    "datacenters": {"data_center/comment", "data_center/description"},
    "networks": set(),
    "vnicprofiles": set(),
}
#: What the recorded engine shows and the simulator does not, as the documentation says; with all below.
LEFT_OUT = {
    "vms": "vm/display/certificate vm/display/secure_port vm/fqdn vm/guest_operating_system "
    "vm/guest_time_zone vm/large_icon vm/small_icon",
    "hosts": "host/certificate host/hardware_information host/iscsi host/os/reported_kernel_cmdline "
    "host/ssh/fingerprint",
    "clusters": "",
    "datacenters": "data_center/mac_pool",
    "networks": "",
    "vnicprofiles": "vnic_profile/network_filter",
}
#: What only some of them have, and none of this state.
OF_OTHERS = {"vms": {"vm/stop_time", "vm/start_time"}}


def paths(root: etree._Element) -> set[str]:
    """Paths of all elements below the items of a collection; links and actions by their rel."""
    found = set()
    for item in root:
        for node in item.iter(etree.Element):
            names = [step(each) for each in (node, *node.iterancestors()) if each is not root]
            found.add("/".join(reversed(names)))
    return found


def step(node: etree._Element) -> str:
    return f"{node.tag}[{node.get('rel')}]" if node.tag == "link" else str(node.tag)


def order(root: etree._Element) -> Iterator[list[str]]:
    """The names of each item's children, in order, each once."""
    for item in root:
        yield list(dict.fromkeys(str(child.tag) for child in item.iterchildren(etree.Element)))


@pytest.mark.parametrize("collection", sorted(NEWER))
def test_nothing_is_invented(server: Server, collection: str) -> None:
    recorded = paths(etree.parse(RECORDING / f"{collection}.xml").getroot())
    shown = paths(request(f"{server.api_url}/{collection}").xml)
    assert shown - recorded <= NEWER[collection]
    assert shown


@pytest.mark.parametrize("collection", sorted(NEWER))
def test_what_is_left_out_is_documented(server: Server, collection: str) -> None:
    recorded = paths(etree.parse(RECORDING / f"{collection}.xml").getroot())
    shown = paths(request(f"{server.api_url}/{collection}").xml)
    for path in recorded - shown - OF_OTHERS.get(collection, set()):
        assert any(f"{path}/".startswith(f"{known}/") for known in LEFT_OUT[collection].split()), path
    page = Path("docs/simulator-limits.md").read_text()
    for known in LEFT_OUT[collection].split():
        name = re.sub(r"/actions/link\[(\w+)\]", r"/\1", known).partition("/")[2]
        assert f"`{name}`" in page.partition("**Left out** of what an engine shows")[2].partition("\n\n")[0]


@pytest.mark.parametrize(
    "collection", ["vms", "hosts", "clusters", "datacenters", "networks", "vnicprofiles"]
)
def test_the_order_is_the_recordings(server: Server, collection: str) -> None:
    known = list(order(etree.parse(RECORDING / f"{collection}.xml").getroot()))
    for shown in order(request(f"{server.api_url}/{collection}").xml):
        for recorded in known:
            common = [tag for tag in shown if tag in recorded]
            assert common == [tag for tag in recorded if tag in common]


def test_attributes_are_ids_and_addresses(server: Server) -> None:
    for collection in sorted(NEWER):
        for node in request(f"{server.api_url}/{collection}").xml.iter(etree.Element):
            assert set(node.attrib) <= {"href", "id", "rel"}
            href = node.get("href")
            assert href is None or href.startswith("/ovirt-engine/api/")


#: Elements of a recorded running VM that this state has nothing for; the API has them as optional.
UNKNOWN_TO_THE_STATE = {
    "creation_time",
    "fqdn",
    "guest_operating_system",
    "guest_time_zone",
    "large_icon",
    "small_icon",
    "quota",
    "cpu_profile",
    "stop_time",
    "start_time",
}


def test_a_running_vm_lacks_nothing_else(server: Server) -> None:
    recorded = next(
        item for item in etree.parse(RECORDING / "vms.xml").getroot() if item.findtext("status") == "up"
    )
    shown = {str(child.tag) for child in request(f"{server.api_url}/vms/web1").xml}
    assert {str(child.tag) for child in recorded} - shown <= UNKNOWN_TO_THE_STATE
    links = {link.get("rel") for link in request(f"{server.api_url}/vms/web1").xml.iter("link")}
    assert {link.get("rel") for link in recorded.iter("link")} <= links
