"""Storage domains are renamed and put into maintenance, and hold leases of VMs."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes

GIB = 1 << 30


def test_a_data_center_without_storage_runs_nothing_with_a_disk(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    vm = system.vms_service().vm_service("db1")
    center = system.data_centers_service().data_center_service("dc1")
    attached = center.storage_domains_service()
    master, other = attached.list()
    service = attached.storage_domain_service(master.id)
    with pytest.raises(Error, match='state other than "Down" or "Suspended"'):
        service.deactivate()
    vm.stop()
    engine.advance(30)
    for domain in (master, other):
        attached.storage_domain_service(domain.id).deactivate()
    assert service.get().status == types.StorageDomainStatus.PREPARING_FOR_MAINTENANCE
    engine.advance(5)
    assert center.get().status == types.DataCenterStatus.MAINTENANCE
    with pytest.raises(Error, match="Storage Domain's status is Maintenance"):
        vm.start()
    system.vms_service().vm_service("spare").start()  # it has no disk
    service.activate()
    assert center.get().status == types.DataCenterStatus.UP
    vm.start()
    assert [code for code in codes(engine) if code > 900] == [968, 968, 966]


def test_a_storage_domain_is_renamed(sdk: Connection) -> None:
    domains = sdk.system_service().storage_domains_service()
    first, second = domains.list()
    service = domains.storage_domain_service(first.id)
    assert service.update(types.StorageDomain(name="mine", description="x")).name == "mine"
    assert domains.list(search="name=mine")[0].description == "x"
    with pytest.raises(Error, match="Storage Domain name is already in use"):
        service.update(types.StorageDomain(name=second.name))


def test_a_storage_domain_is_as_full_as_its_disks(sdk: Connection) -> None:
    system = sdk.system_service()
    first, second = system.storage_domains_service().list()

    def space(domain: types.StorageDomain) -> tuple[float, float, float]:
        """What is available, used and committed in GiB, by itself and as the data center has it."""
        alone = system.storage_domains_service().storage_domain_service(domain.id).get()
        center = system.data_centers_service().data_center_service("dc1")
        attached = center.storage_domains_service().storage_domain_service(domain.id).get()
        figures = [(one.available / GIB, one.used / GIB, one.committed / GIB) for one in (alone, attached)]
        assert figures[0] == figures[1]
        return figures[0]

    def add(size: int, domain: types.StorageDomain) -> types.Disk:
        disk = types.Disk(
            name=f"of {size}",
            provisioned_size=size,
            format=types.DiskFormat.COW,
            storage_domains=[types.StorageDomain(id=domain.id)],
        )
        return system.disks_service().add(disk)

    assert space(first) == (1024 - 20, 20, 20)  # the two disks of db1
    assert space(second) == (1024, 0, 0)
    small = add(GIB // 4, second)
    assert space(second) == (1023, 1, 0)
    add(2000 * GIB, second)
    assert space(second) == (0, 2001, 2000)
    assert space(first) == (1004, 20, 20)
    system.disks_service().disk_service(small.id).move(storage_domain=types.StorageDomain(id=first.id))
    assert space(second) == (0, 2000, 2000)
    assert space(first) == (1003, 21, 20)


def test_a_highly_available_vm_has_a_lease(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    domain = system.storage_domains_service().list()[0]
    vm = system.vms_service().vm_service("spare")
    lease = types.StorageDomainLease(storage_domain=types.StorageDomain(id=domain.id))
    with pytest.raises(Error, match="high availability option is set to false"):
        vm.update(types.Vm(lease=lease))
    enabled = types.HighAvailability(enabled=True)
    assert vm.update(types.Vm(lease=lease, high_availability=enabled)).lease.storage_domain.id == domain.id
    unknown = types.StorageDomainLease(storage_domain=types.StorageDomain(id="none"))
    with pytest.raises(Error, match="Storage Domain doesn't exist"):
        vm.update(types.Vm(lease=unknown))
    with pytest.raises(Error, match="A VM lease was defined"):
        vm.update(types.Vm(high_availability=types.HighAvailability(enabled=False)))
    assert codes(engine) == [35]
