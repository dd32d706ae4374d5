"""Affinity labels are added, given to VMs and hosts, taken away and removed."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types


def test_a_labels_life(sdk: Connection) -> None:
    labels = sdk.system_service().affinity_labels_service()
    label = labels.add(types.AffinityLabel(name="gpu"))
    service = labels.label_service(label.id)
    assert service.vms_service().add(types.Vm(id="web1")).id == "web1"
    assert service.hosts_service().add(types.Host(id="host1")).id == "host1"
    assert [vm.id for vm in sdk.follow_link(service.get().vms)] == ["web1"]
    assert service.vms_service().vm_service("web1").get().id == "web1"

    with pytest.raises(Error) as caught:
        service.remove()
    assert caught.value.code == 409
    service.vms_service().vm_service("web1").remove()
    service.hosts_service().host_service("host1").remove()
    with pytest.raises(NotFoundError):
        service.vms_service().vm_service("web1").remove()
    assert service.update(types.AffinityLabel(name="fpga")).name == "fpga"
    service.remove()
    assert {each.name for each in labels.list()} == {"backend", "empty"}


def test_added_with_members(sdk: Connection) -> None:
    labels = sdk.system_service().affinity_labels_service()
    label = labels.add(
        types.AffinityLabel(name="both", vms=[types.Vm(id="web1")], hosts=[types.Host(id="far")])
    )
    (shown,) = (each for each in labels.list(follow="vms,hosts") if each.id == label.id)
    assert ([vm.id for vm in shown.vms], [host.id for host in shown.hosts]) == (["web1"], ["far"])
