"""Faults, pages and headers are those of a real engine, as plain HTTP and as the SDK's exceptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from ovirtsdk4 import NotFoundError, types
from ovirtsdk4.services import SystemService

from ovirt_simulator.http import markup
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import Api, request

GROUPS = "clusters/cluster1/affinitygroups"
COLLECTIONS = ("vms", "hosts", "clusters", "affinitylabels", "jobs", "schedulingpolicies")
NOWHERE = ("disks", "vms/web1/snapshots", "nonsense")


PERHAPS = "<affinity_group><positive>perhaps</positive></affinity_group>"
UNREADABLE = "Request syntactically incorrect."
INVALID = "Input validation failed."
#: Where the file is read, the group has a name.
READS_A_FILE = (
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    "<affinity_group><name>&e;</name></affinity_group>"
)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "vms", None, "200 OK", ""),
        *(("GET", path, None, "200 OK", "") for path in ("", "/vms", "vms/")),
        ("POST", "affinitylabels", "<affinity_label><name>new</name></affinity_label>", "201 Created", ""),
        ("POST", GROUPS, "<affinity_group><name>new</name></affinity_group>", "201 Created", ""),
        ("DELETE", f"{GROUPS}/apart", None, "200 OK", ""),
        ("POST", "affinitylabels", "<affinity_label/>", "400 Bad Request", INVALID),
        ("GET", "events/xyz", None, "400 Bad Request", "Operation failed"),
        *(
            ("POST", GROUPS, body, "400 Bad Request", UNREADABLE)
            for body in ("", "<vm/>", "<affinity_group>", PERHAPS)
        ),
        ("POST", GROUPS, READS_A_FILE, "400 Bad Request", INVALID),
        *(("GET", f"{collection}/none", None, "404 Not Found", None) for collection in COLLECTIONS),
        ("GET", "events/4711", None, "404 Not Found", None),
        ("POST", "vms/spare/migrate", "<action/>", "409 Conflict", "Operation Failed"),
        *(
            (method, path, None, "501 Not Implemented", "Not simulated")
            for method, path in (("DELETE", "clusters"), *(("GET", path) for path in NOWHERE))
        ),
    ],
)
def test_statuses_and_reasons(
    api: Api, method: str, path: str, body: str | None, status: str, reason: str | None
) -> None:
    """None as the reason: the body is empty."""
    reply = api(path, method, body)
    assert f"{reply.status} {reply.phrase}" == status
    assert (reply.xml.findtext(".//reason", "") if reply.body else None) == reason


def test_what_is_outside_of_the_api_is_not_there(server: Server) -> None:
    assert request(f"{server.url}/elsewhere").status == 404


def test_commands_name_what_they_do_not_find(system: SystemService) -> None:
    label = system.affinity_labels_service().label_service("backend")
    with pytest.raises(NotFoundError) as caught:
        label.vms_service().vm_service("web1").remove()
    assert (caught.value.code, caught.value.fault.reason) == (404, "Operation Failed")
    assert caught.value.fault.detail.startswith("Entity not found: ")


@pytest.mark.parametrize(
    ("given", "shown"), [("abc-DEF_1", "abc-DEF_1"), ("a b/c:d", "abcd"), ("x" * 50, "x" * 36)]
)
def test_the_correlation_id_is_cleaned_cut_and_echoed(api: Api, given: str, shown: str) -> None:
    by_header = api("vms/idle", headers={"Correlation-Id": given})
    assert by_header.headers["correlation-id"] == shown
    if given.isascii() and " " not in given:
        assert api(f"vms/x?correlation_id={given}").headers["correlation-id"] == shown


def test_without_one_a_correlation_id_is_made_up(api: Api) -> None:
    assert len({api("vms/idle").headers["correlation-id"] for _ in range(3)}) == 3


def test_every_answer_can_be_read(api: Api) -> None:
    """Answers with a body say what it is; the SDK fails on those that do not."""
    for path in ("vms", "vms/none", "events/x", "vms?follow=nonsense", "nonsense"):
        reply = api(path)
        assert ("content-type" in reply.headers) == bool(reply.body), path


def test_names_come_through_whatever_they_hold(system: SystemService) -> None:
    labels = system.affinity_labels_service()
    for name in ("<a> & \"b\" 'c'", "ünïcödé ✓ 𝄞", "]]>"):
        label = labels.add(types.AffinityLabel(name=name))
        assert labels.label_service(label.id).get().name == name


def test_an_id_cannot_be_changed(api: Api) -> None:
    reply = api("vms/spare", "PUT", '<vm id="web1"><description>x</description></vm>')
    assert (reply.status, reply.xml.findtext("detail")) == (409, "Attempt to set immutable field: id")
    assert api("vms/spare", "PUT", '<vm id="spare"/>').status == 200


# -- Whatever text the state holds, what is rendered is XML and says the same.
#: Text that XML can hold.
LEGAL = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff", include_characters="\t\n\r"
    )
)


@given(LEGAL, LEGAL)
def test_text_and_attributes_come_through(content: str, entity_id: str) -> None:
    rendered = markup.entity("vm", "/x", entity_id, markup.text("name", content))
    node = etree.fromstring(rendered.encode())
    assert (node.findtext("name"), node.get("id")) == (content, entity_id)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_xml_cannot_hold_is_replaced(content: str) -> None:
    assert len(etree.fromstring(markup.text("name", content).encode()).text or "") == len(content)


def test_absent_values_are_left_out() -> None:
    assert markup.text("a", None) == ""
    assert markup.entity("a", None, "1", "", markup.text("b", False), "") == '<a id="1">\n<b>false</b>\n</a>'
    assert (markup.element("hosts"), markup.collection("vms", [])) == ("<hosts/>", "<vms/>")


@given(st.text(min_size=1, alphabet="ab/%?#& é"))
def test_addresses_are_quoted(entity_id: str) -> None:
    address = markup.path("vms", entity_id)
    assert not set(address) & set("?#& é")
    assert address.count("/") == 4
