"""What the simulator has not is refused clearly, and never quietly left out of an answer."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("vms/web1?detail=statistics", 501),
        ("vms/web1;detail=statistics", 501),
        ("vms/web1?async=true", 501),
        ("vms/web1?async=false", 200),
        ("vms/web1?next_run=true", 200),  # nothing here waits for the next run
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
        ("PUT", "clusters/cluster1", "<cluster><version><major>4</major></version></cluster>", 501),
        ("PUT", "clusters/cluster1", "<cluster><ballooning_enabled>true</ballooning_enabled></cluster>", 501),
        ("PUT", "clusters/cluster1", "<cluster><fencing_policy/><name>Default</name></cluster>", 200),
        ("POST", "tags", "<tag><name>new</name><owner>x</owner></tag>", 501),
        ("POST", "vms/spare/start", "<action><pause>true</pause></action>", 501),
        ("POST", "vms/spare/start", "<action><pause>false</pause></action>", 200),
        ("POST", "vms/web1/nics", "<nic><name>x</name><mac><address>00</address></mac></nic>", 501),
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
    with pytest.raises(Error, match="the element vm/lease") as caught:
        vms.vm_service("spare").update(
            types.Vm(
                description="changed",
                lease=types.StorageDomainLease(storage_domain=types.StorageDomain(id="x")),
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
