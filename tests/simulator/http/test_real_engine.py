"""What the simulator shows and refuses is what a real engine does: recordings of one are the contract."""

import json
from typing import Any

import pytest
from lxml import etree

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.builders import APART, DISABLED, TOGETHER, cluster, group, host, label, vm
from tests.paths import DATA
from tests.simulator.core import engines
from tests.simulator.http.plain import Api, request

RECORDED = DATA / "real-engine"
REFUSALS: list[dict[str, Any]] = json.loads((RECORDED / "refusals.json").read_text())


@pytest.fixture
def engine() -> Engine:
    return engines.engine(
        cluster("c1", name="Default"),
        *(host(f"node{number}", cluster="c1") for number in range(1, 4)),
        vm("db1", "node1", cluster="c1"),
        vm("db2", "node2", cluster="c1"),
        vm("lic1", cluster="c1"),
        vm("idle", cluster="c1"),
        group("db-apart", APART, "db1 db2", cluster="c1"),
        group("lic", DISABLED, "lic1", hosts_rule=TOGETHER, hosts="node1", cluster="c1"),
        label("ssd"),
    )


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: str(refusal["case"]))
def test_refusals_are_the_engines(server: Server, refusal: dict[str, Any]) -> None:
    reply = request(f"{server.api_url}{refusal['path']}", refusal["method"], refusal["body"])
    detail = reply.xml.findtext(".//detail") or ""
    assert reply.status == refusal["status"], detail
    assert detail == refusal["detail"] or (
        refusal["detail"].endswith("see: ") and detail.startswith(refusal["detail"])
    )


def recorded(name: str) -> etree._Element:
    return etree.parse(RECORDED / f"{name}.xml").getroot()


def names(node: etree._Element) -> list[str]:
    return list(dict.fromkeys(str(child.tag) for child in node.iterchildren("*")))


@pytest.mark.parametrize(
    ("file", "address"),
    [("affinitygroups", "/clusters/c1/affinitygroups"), ("jobs-max4", "/jobs"), ("vm-migrating", "/vms/db1")],
)
def test_what_is_shown_the_engine_shows(server: Server, engine: Engine, file: str, address: str) -> None:
    engine.vms.stop("idle")
    engine.vms.migrate("db1", host_id="node3")
    known = recorded(file)
    shown = request(f"{server.api_url}{address}").xml
    if known.tag == shown.tag and not known.get("id"):
        known, shown = known[0], shown[0]
    of_this_state = {"custom_properties", "description"}
    assert set(names(shown)) <= set(names(known)) | of_this_state
    assert shown.tag != "affinity_group" or set(names(known)) <= set(names(shown))
    assert len(names(shown)) > 5


def test_times_and_numbers_are_spelled_as_the_engine_does(api: Api) -> None:
    (known, *_) = recorded("affinitygroups")
    shown = api("clusters/c1/affinitygroups/lic").xml
    assert shown.findtext("priority") == known.findtext("priority") == "1"
    assert api("").xml.findtext("time", "").endswith("Z"), "the engine's zone is UTC"


def test_events_speak_of_what_the_engines_speak_of(api: Api, engine: Engine) -> None:
    """Of migrations: VM and host, their cluster and data center, and the VM's template."""
    engine.vms.migrate("db1", host_id="node3")
    engine.advance(60)
    known = {event.findtext("code"): with_ids(event) for event in recorded("events")}
    for event in api("events").xml:
        code = event.findtext("code")
        if code in known and code != "30":
            assert with_ids(event) == known[code], code


def with_ids(node: etree._Element) -> set[str]:
    return {str(child.tag) for child in node if child.get("id")}


def test_a_refused_and_a_cancelled_command_leave_a_failed_job(api: Api, engine: Engine) -> None:
    api("vms/idle/migrate", "POST", "<action/>")
    engine.vms.migrate("db1", host_id="node3")
    engine.vms.cancel_migration("db1")
    engine.advance(10)
    jobs = {job.findtext("description"): job.findtext("status") for job in api("jobs").xml}
    assert jobs["Migrating VM idle"] == jobs["Migrating VM db1 to Host node3"] == "failed"


def test_the_policies_show_the_units_that_the_engines_show(server: Server, api: Api) -> None:
    """Filters that count in every policy are shown in none, nor among the units."""
    ours = {one.get("id") for one in recorded("schedulingpolicyunits") if one.findtext("internal") == "false"}
    none = f"{server.api_url}/schedulingpolicies/b4ed2332-a7ac-4d5f-9596-99a439cb2812"
    filters = {one.get("id"): one.findtext("position") for one in recorded("policy-filters")}
    assert {one.get("id"): one.findtext("position") for one in request(f"{none}/filters").xml} == {
        unit: position for unit, position in filters.items() if unit not in ours
    }
    known = {(unit.findtext("name"), unit.findtext("type")) for unit in recorded("schedulingpolicyunits")}
    units = api("schedulingpolicyunits").xml
    assert {(unit.findtext("name"), unit.findtext("type")) for unit in units} <= known
    body = "<scheduling_policy><name>p</name></scheduling_policy>"
    added = api("schedulingpolicies", "POST", body).xml.get("id")
    assert len(api(f"schedulingpolicies/{added}/filters").xml) == 0


def test_a_locked_policy_shows_the_name_that_was_refused(server: Server) -> None:
    none = f"{server.api_url}/schedulingpolicies/b4ed2332-a7ac-4d5f-9596-99a439cb2812"
    assert request(none, "PUT", "<scheduling_policy><name>mine</name></scheduling_policy>").status == 400
    assert request(none).xml.findtext("name") == "mine"
