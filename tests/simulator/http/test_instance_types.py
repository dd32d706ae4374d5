"""Instance types: what VMs that are made with one have."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types


def test_a_vm_is_made_with_the_hardware_of_its_instance_type(sdk: Connection) -> None:
    system = sdk.system_service()
    instance_types, vms = system.instance_types_service(), system.vms_service()
    wanted = types.InstanceType(
        name="large",
        memory=2 << 30,
        high_availability=types.HighAvailability(enabled=True),
        cpu=types.Cpu(topology=types.CpuTopology(sockets=2, cores=2)),
    )
    added = instance_types.add(wanted)
    assert (added.memory, added.cpu.topology.cores) == (2 << 30, 2)
    with pytest.raises(Error, match="Instance Type name is already in use"):
        instance_types.add(wanted)
    assert added.id in [one.id for one in instance_types.list()]
    vm = vms.add(
        types.Vm(
            name="new",
            cluster=types.Cluster(name="Default"),
            template=types.Template(name="Blank"),
            instance_type=types.InstanceType(name="large"),
            cpu=types.Cpu(topology=types.CpuTopology(sockets=3)),
        )
    )
    assert (vm.instance_type.id, vm.memory, vm.high_availability.enabled) == (added.id, 2 << 30, True)
    assert (vm.cpu.topology.sockets, vm.cpu.topology.cores) == (3, 2)  # what the body says comes first
    instance_types.instance_type_service(added.id).remove()
    assert vms.vm_service(vm.id).get().instance_type is None


def test_what_every_engine_begins_with(sdk: Connection) -> None:
    """As its database scripts have it; the VM db1 of the state file has one of which only the id is known."""
    found = {one.name: one for one in sdk.system_service().instance_types_service().list()}
    assert {
        name: (one.id, one.description, one.memory >> 20, one.cpu.topology.sockets)
        for name, one in found.items()
        if name != "small"
    } == {
        "Tiny": ("00000003-0003-0003-0003-0000000000be", "Tiny instance type", 512, 1),
        "Small": ("00000005-0005-0005-0005-0000000002e6", "Small instance type", 2048, 1),
        "Medium": ("00000007-0007-0007-0007-00000000010a", "Medium instance type", 4096, 2),
        "Large": ("00000009-0009-0009-0009-0000000000f1", "Large instance type", 8192, 2),
        "XLarge": ("0000000b-000b-000b-000b-00000000021f", "Extra Large instance type", 16384, 4),
    }
    assert all(found[name].memory_policy.max == 4 * found[name].memory for name in ("Tiny", "XLarge"))


def test_a_vm_of_a_predefined_type(sdk: Connection) -> None:
    system = sdk.system_service()
    (large,) = system.instance_types_service().list(search="name=XLarge")
    vm = system.vms_service().add(
        types.Vm(
            name="new",
            cluster=types.Cluster(name="Default"),
            template=types.Template(name="Blank"),
            instance_type=types.InstanceType(id=large.id),
        )
    )
    assert (vm.memory >> 20, vm.cpu.topology.sockets, vm.instance_type.id) == (16384, 4, large.id)
