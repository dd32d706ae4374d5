"""JSON in both directions: the same answers and commands as in XML, in the engine's way of writing them."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from lxml import etree
from ovirtsdk4 import writers

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import json_form
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import Reply, request
from tests.simulator.http.recordings import SMALL

JSON = "application/json"


def ask(server: Server, path: str, accept: str = JSON) -> Reply:
    return request(f"{server.api_url}/{path}", headers={"Accept": accept})


def reported(server: Server, path: str) -> Any:
    reply = ask(server, path)
    assert (reply.status, reply.headers["content-type"]) == (200, JSON)
    return json.loads(reply.body)


def test_what_one_thing_and_many_look_like(server: Server) -> None:
    vms = reported(server, "vms")
    assert list(vms) == ["vm"]
    assert len(vms["vm"]) == 11
    (only,) = reported(server, "vms?search=name=db1")["vm"]
    assert only == next(vm for vm in vms["vm"] if vm["id"] == "db1")
    assert only["href"] == "/ovirt-engine/api/vms/db1"
    assert reported(server, "vms?search=name=nobody") == {}
    assert "start" in {link["rel"] for link in only["actions"]["link"]}


def test_values(server: Server) -> None:
    """Whole numbers and flags are strings, decimals numbers, times milliseconds."""
    vm = reported(server, "vms/db1")
    assert (vm["memory"], vm["high_availability"]["enabled"]) == ("8589934592", "false")
    assert (vm["description"], vm["cpu"]["topology"]["sockets"]) == ("", "4")
    assert vm["creation_time"] == datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000
    assert vm["placement_policy"]["hosts"] == {
        "host": [{"href": "/ovirt-engine/api/hosts/host2", "id": "host2"}]
    }
    group = reported(server, "clusters/cluster1/affinitygroups/apart")
    assert group["priority"] == 2.5
    assert group["hosts"] == {}
    assert [each["id"] for each in group["vm_labels"]["affinity_label"]] == ["backend"]
    assert reported(server, "datacenters/dc1")["supported_versions"]["version"][0]["major"] == "4"
    used = next(
        one
        for one in reported(server, "hosts/host1/statistics")["statistic"]
        if one["name"] == "cpu.current.idle"
    )
    assert isinstance(used["values"]["value"][0]["datum"], float)


def test_what_a_client_asks_for(server: Server) -> None:
    for accept, given in [
        ("*/*", "application/xml"),
        ("application/xml", "application/xml"),
        ("application/json, application/xml;q=0.5", JSON),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", "application/xml"),
        ("application/json; charset=utf-8", JSON),
        ("application/xml; charset=UTF-8", "application/xml"),
    ]:
        assert ask(server, "vms/db1", accept).headers["content-type"].startswith(given)
    assert ask(server, "vms/db1", "image/png").status == 406
    assert ask(server, f"vms/db1?accept={JSON}", "application/xml").headers["content-type"] == JSON


def send(server: Server, path: str, body: object, method: str = "POST") -> Reply:
    text = body if isinstance(body, str) else json.dumps(body)
    return request(f"{server.api_url}/{path}", method, text, headers={"Accept": JSON, "Content-Type": JSON})


def test_bodies(server: Server, engine: Engine) -> None:
    group = {
        "name": "new",
        "priority": 3,
        "vms_rule": {"enabled": True, "positive": "true", "enforcing": False},
        "vms": {"vm": [{"id": "idle"}, {"id": "spare"}]},
    }
    reply = send(server, "clusters/cluster1/affinitygroups", group)
    assert reply.status == 201
    made = engine.queries.affinity_group(json.loads(reply.body)["id"])
    assert made is not None
    assert (made.vms, made.priority) == (("idle", "spare"), 3.0)
    assert (made.vms_rule.positive, made.vms_rule.enforcing) == (True, False)
    refused = send(server, "vms/spare/migrate", {"host": {"id": "host1"}})
    assert refused.status == 409
    assert json.loads(refused.body)["fault"]["reason"] == "Operation Failed"
    assert json.loads(send(server, "vms/spare/start", {}).body)["status"] == "complete"


def test_times_are_milliseconds_in_bodies_too(server: Server) -> None:
    event = {"origin": "x", "severity": "normal", "custom_id": "1", "description": "d", "time": 1772366400000}
    assert json.loads(send(server, "events", event).body)["time"] == 1772366400000


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "3", '"x"', '{"name": {"a": "\\u0000"}}', '{"a b": "x"}'),
        *('{"name": ["x"]}', '{"name": "x", "parent": [{"id": "y"}]}', '{"name": "x", "link": {}}'),
    ],
)
def test_what_is_no_json_is_answered_with_a_usage_message(server: Server, body: str) -> None:
    reply = send(server, "tags", body)
    assert reply.status == 400
    assert "message" in json.loads(reply.body)


def test_other_bodies_are_not_read(server: Server) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert request(f"{server.api_url}/tags", "POST", "name=x", headers=headers).status == 415


@pytest.mark.parametrize("collection", ["vms", "hosts", "clusters", "templates", "disks", "networks"])
def test_recorded_answers_come_back_from_json(collection: str) -> None:
    """What a real engine said in XML is in the JSON, and nothing else: read back, it has the same leaves."""
    document = (SMALL / f"{collection}.xml").read_bytes()
    tree = etree.fromstring(document, etree.XMLParser(remove_blank_text=True))
    reported = json.loads(json_form.to_json(etree.tostring(tree)))
    assert leaves(json_form.from_json(json.dumps(reported).encode(), collection)) == leaves(tree)


def leaves(root: etree._Element) -> list[tuple[str, str]]:
    found = []
    for node in root.iter(etree.Element):
        path = "/".join([*(str(each.tag) for each in reversed(list(node.iterancestors()))), str(node.tag)])
        found += [(f"{path}@{name}", value) for name, value in node.attrib.items()]
        if (
            not len(node)
            and node.text
            and not node.tag.endswith("time")
            and node.tag not in ("speed", "priority")
        ):
            found.append((path, node.text))
    return sorted(found)


def test_lists_and_times_are_those_of_the_api() -> None:
    """The SDK's writers know which elements are lists, whatever is in them, and which are times."""
    source = inspect.getsource(writers)
    for item, items in re.findall(r"write_many\([^,]+, writer, '(\w+)', '(\w+)'\)", source):
        reported = json.loads(json_form.to_json(f"<x><{items}><{item} id='a'/></{items}></x>".encode()))
        assert reported == {items: {item: [{"id": "a"}]}}
    for name in re.findall(r"write_date\(writer, '(\w+)'", source):
        moment = "2026-03-01T12:00:00.000Z"
        assert json.loads(json_form.to_json(f"<x><{name}>{moment}</{name}></x>".encode())) == {
            name: 1772366400000
        }
