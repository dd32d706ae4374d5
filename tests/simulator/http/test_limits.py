"""What the simulator has not is refused clearly, and never quietly left out of an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.http import limits
from ovirt_simulator.http.resources import empty
from ovirt_simulator.http.routes import routes
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("vms/web1?detail=statistics", 501),
        ("vms/web1;detail=statistics", 501),
        ("vms/web1?async=true", 501),
        ("vms/web1?async=false", 200),
        ("vms?nonsense=1", 200),  # the engine reads past what its API has not
    ],
)
def test_parameters(server: Server, path: str, status: int) -> None:
    reply = request(f"{server.api_url}/{path}")
    assert reply.status == status
    if status == 501:
        assert reply.xml.findtext("reason") == "Not simulated"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "clusters/cluster1", "<cluster><version><build>4</build></version></cluster>", 501),
        ("PUT", "clusters/cluster1", "<cluster><supported_versions>x</supported_versions></cluster>", 501),
        ("PUT", "clusters/cluster1", "<cluster><fencing_policy/><name>Default</name></cluster>", 200),
        ("PUT", "vms/spare", "<vm><cpu_pinning_policy>none</cpu_pinning_policy></vm>", 200),
        ("POST", "tags", "<tag><name>new</name><owner>x</owner></tag>", 501),
        ("POST", "vms/spare/start", "<action><pause>true</pause></action>", 501),
        ("POST", "vms/spare/start", "<action><pause>false</pause></action>", 200),
        ("POST", "vms/web1/nics", "<nic><name>x</name><boot_protocol>dhcp</boot_protocol></nic>", 501),
    ],
)
def test_elements(server: Server, method: str, path: str, body: str, status: int) -> None:
    reply = request(f"{server.api_url}/{path}", method, body)
    assert (reply.status, reply.xml.findtext(".//reason")) == (
        status,
        "Not simulated" if status == 501 else None,
    )


def test_a_refusal_changes_nothing_and_says_what_it_is_about(sdk: Connection) -> None:
    vms = sdk.system_service().vms_service()
    with pytest.raises(Error, match="the element vm/domain") as caught:
        vms.vm_service("spare").update(
            types.Vm(
                description="changed",
                domain=types.Domain(name="x"),
            )
        )
    assert caught.value.code == 501
    assert vms.vm_service("spare").get().description == ""


def test_what_was_read_may_be_sent_back(sdk: Connection) -> None:
    """The SDK sends whole entities: what the simulator itself shows of one, it takes."""
    system = sdk.system_service()
    label = system.affinity_labels_service().label_service("empty")
    label.update(label.get())
    group = (
        system.clusters_service().cluster_service("cluster1").affinity_groups_service().group_service("near")
    )
    group.update(group.get())
    tag = system.tags_service().tag_service(system.tags_service().list()[0].id)
    assert tag.update(tag.get()).name == tag.get().name


def test_what_is_read_past_is_documented() -> None:
    """Each line of the documentation's table is one body; the lines that it should have are these."""
    page = Path("docs/simulator-limits.md").read_text()
    wanted = [
        f"| {body} | {', '.join(f'`{name}`' for name in names)} |"
        for body, names in limits.read_past().items()
    ]
    table = page.partition("| body | read past |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| [a-z].*$", table, re.MULTILINE) == wanted


def test_collections_that_are_empty_are_documented() -> None:
    page = Path("docs/simulator-limits.md").read_text()
    found: dict[str, list[str]] = {}
    for rule in routes().iter_rules():
        if rule.endpoint.answer.__module__ == empty.__name__:
            owner, _, name = re.sub("<[a-z_]+>", "ID", rule.rule).rpartition("/")
            found.setdefault(owner, []).append(name)
    wanted = [
        f"| `{owner}/` | {', '.join(f'`{name}`' for name in sorted(names))} |"
        for owner, names in sorted(found.items())
    ]
    table = page.partition("| below | there and empty |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `.*$", table, re.MULTILINE) == wanted


@pytest.mark.parametrize(
    ("method", "path", "body", "element"),
    [
        ("PUT", "vms/spare", "<vm><cpu><level>4</level></cpu></vm>", "vm/cpu/level"),
        (
            "PUT",
            "vms/spare",
            "<vm><cpu_pinning_policy>dedicated</cpu_pinning_policy></vm>",
            "vm/cpu_pinning_policy",
        ),
        ("PUT", "vms/spare", "<vm><os><version/><nonsense>x</nonsense></os></vm>", "vm/os/nonsense"),
        (
            "POST",
            "clusters/cluster1/affinitygroups",
            "<affinity_group><name>n</name><vms><vm><name>idle</name></vm></vms></affinity_group>",
            "affinity_group/vms/vm/name",
        ),
        ("POST", "vms/spare/start", "<action><host id='host1'/></action>", "action/host"),
        ("POST", "vms/spare/start", "<action><vm><memory>1</memory></vm></action>", "action/vm/memory"),
        ("POST", "vms/web1/shutdown", "<action><vm id='x'/></action>", "action/vm"),
        ("POST", "tags", '{"name": "n", "parent": {"comment": "x"}}', "tag/parent/comment"),
    ],
)
def test_elements_below_others(server: Server, method: str, path: str, body: str, element: str) -> None:
    """Depth makes no difference, and an action takes what is its own alone."""
    kind = "application/json" if body.startswith("{") else "application/xml"
    reply = request(f"{server.api_url}/{path}", method, body, headers={"Content-Type": kind})
    assert (reply.status, f"the element {element};" in (reply.xml.findtext("detail") or "")) == (501, True)


def test_filtered_queries(server: Server) -> None:
    """What only admins may ask is refused; what a user sees of VMs comes from its permissions."""
    for path in ("tags", "schedulingpolicies", "clusters/cluster1/affinitygroups", "jobs"):
        for reply in (
            request(f"{server.api_url}/{path}?filter=true"),
            request(f"{server.api_url}/{path}", user="user@internal:password"),
            request(f"{server.api_url}/{path}", headers={"Filter": "true"}),
        ):
            assert (reply.status, "insufficient permissions" in reply.body.decode()) == (400, True)
    for path in ("datacenters", "templates", "vms"):
        assert len(request(f"{server.api_url}/{path}?filter=true").xml) == 0
    assert request(f"{server.api_url}/disks?filter=true").status == 501
