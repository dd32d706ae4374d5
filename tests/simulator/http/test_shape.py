"""What is rendered has the names, order and nesting of a real engine's XML, and nothing invented."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lxml import etree

from ovirt_simulator.http.server import Server
from tests.paths import RECORDING
from tests.simulator.http.plain import request

#: What a 4.5 engine's mappers (ClusterMapper, ...) show and the recorded 4.2 does not, or another state.
NEWER: dict[str, set[str]] = {
    "vms": {
        "vm/cpu_pinning_policy",
        "vm/custom_properties",
        "vm/custom_properties/custom_property",
        "vm/custom_properties/custom_property/name",
        "vm/custom_properties/custom_property/value",
        "vm/instance_type",
        "vm/placement_policy/hosts",
        "vm/placement_policy/hosts/host",
    },
    "hosts": set(),
    "clusters": {"cluster/data_center", "cluster/upgrade_in_progress", "cluster/upgrade_percent_complete"},
    "datacenters": {"data_center/description"},
    "networks": set(),
    "vnicprofiles": set(),
}


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
