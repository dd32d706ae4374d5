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
    assert [one.name for one in instance_types.list()] == ["large", "small"]
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
