"""What a VM that runs takes at once, and what it takes when it starts again."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, services, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core import engines

MIB = 1 << 20
MEMORY = 1024 * MIB


@pytest.fixture
def vm(sdk: Connection) -> services.VmService:
    """One that is up."""
    return sdk.system_service().vms_service().vm_service("web1")


def sockets(number: int) -> types.Cpu:
    return types.Cpu(topology=types.CpuTopology(sockets=number))


def new_codes(engine: Engine, before: list[int]) -> list[int]:
    return engines.codes(engine)[len(before) :]


def test_what_needs_another_start_waits_for_it(vm: services.VmService, engine: Engine) -> None:
    before = engines.codes(engine)
    cpu = types.Cpu(topology=types.CpuTopology(cores=4))
    vm.update(types.Vm(cpu=cpu, description="soon", custom_properties=[]))
    now, then = vm.get(), vm.get(next_run=True)
    assert (now.description, now.cpu.topology.cores, now.next_run_configuration_exists) == ("soon", 1, True)
    assert now.custom_properties[0].name == "k"
    assert (then.cpu.topology.cores, then.custom_properties) == (4, None)
    vm.shutdown()
    engine.advance(10)
    assert new_codes(engine, before) == [35, 73, 61, 253]
    down = vm.get()
    assert (down.cpu.topology.cores, down.next_run_configuration_exists) == (4, False)
    assert engines.vm(engine, "web1").vcpus == 4


def test_a_reboot_takes_it_up(sdk: Connection, engine: Engine) -> None:
    vm = sdk.system_service().vms_service().vm_service("remote")
    vm.update(types.Vm(cpu=sockets(2)))
    before = engines.codes(engine)
    vm.update(types.Vm(cpu=sockets(1)), next_run=True)
    assert (vm.get().cpu.topology.sockets, vm.get(next_run=True).cpu.topology.sockets) == (2, 1)
    vm.reboot()
    assert vm.get().status == types.VmStatus.REBOOT_IN_PROGRESS
    engine.advance(30)
    assert (vm.get().status, vm.get().cpu.topology.sockets) == (types.VmStatus.UP, 1)
    assert new_codes(engine, before) == [35, 73, 157, 61, 9611, 253, 506, 32]


def test_it_is_asked_again_each_time(vm: services.VmService) -> None:
    cores = types.Cpu(topology=types.CpuTopology(cores=4))
    vm.update(types.Vm(cpu=cores))
    vm.update(types.Vm(type=types.VmType.DESKTOP), next_run=True)
    assert vm.get(next_run=True).cpu.topology.cores == 4, "to what is kept, more comes"
    vm.update(types.Vm(comment="x"))
    kept = vm.get(next_run=True)
    assert (kept.cpu.topology.cores, kept.comment) == (1, "x"), "without next_run, what was kept is forgotten"
    assert vm.get().next_run_configuration_exists


def test_memory_and_cpus_are_plugged_in(vm: services.VmService, engine: Engine) -> None:
    before = engines.codes(engine)
    vm.update(types.Vm(memory=MEMORY + 256 * MIB, cpu=sockets(2)))
    assert not vm.get().next_run_configuration_exists
    assert new_codes(engine, before) == [2033, 2039, 35]
    assert "from 1024 to 1280" in engine.queries.events()[1].description
    vm.update(types.Vm(memory=MEMORY, memory_policy=types.MemoryPolicy(guaranteed=512 * MIB)))
    assert vm.get().memory == MEMORY
    assert new_codes(engine, before)[3:] == [2046, 35]
    vm.update(types.Vm(memory=MEMORY - 256 * MIB))
    assert vm.get().memory == MEMORY, "only what was plugged in can be taken back"
    vm.update(types.Vm(memory=MEMORY + 100 * MIB))
    assert (vm.get().memory, vm.get(next_run=True).memory) == (MEMORY, MEMORY + 100 * MIB)


def test_what_nothing_depends_on_is_kept(sdk: Connection) -> None:
    vm = sdk.system_service().vms_service().vm_service("idle")
    pins = [types.VcpuPin(vcpu=0, cpu_set="1"), types.VcpuPin(vcpu=1, cpu_set="2")]
    given = types.Vm(
        bios=types.Bios(boot_menu=types.BootMenu(enabled=True)),
        cpu=types.Cpu(cpu_tune=types.CpuTune(vcpu_pins=pins)),
        high_availability=types.HighAvailability(priority=50),
        os=types.OperatingSystem(boot=types.Boot(devices=[types.BootDevice.NETWORK])),
        sso=types.Sso(methods=[]),
        time_zone=types.TimeZone(name="Etc/<&>"),
        usb=types.Usb(enabled=True),
    )
    vm.update(given)
    kept = vm.get()
    assert (kept.bios.boot_menu.enabled, kept.bios.type) == (True, types.BiosType.Q35_SEA_BIOS)
    assert [(pin.vcpu, pin.cpu_set) for pin in kept.cpu.cpu_tune.vcpu_pins] == [(0, "1"), (1, "2")]
    assert (kept.high_availability.enabled, kept.high_availability.priority) == (False, 50)
    assert (kept.os.boot.devices, kept.os.type) == ([types.BootDevice.NETWORK], "other")
    assert (kept.sso.methods, kept.time_zone.name, kept.usb.enabled) == ([], "Etc/<&>", True)
    vm.update(types.Vm(cpu_shares=512))
    assert (vm.get().cpu_shares, vm.get().time_zone.name) == (512, "Etc/<&>")


def test_a_vm_that_must_stay_is_not_removed(sdk: Connection) -> None:
    vm = sdk.system_service().vms_service().vm_service("idle")
    vm.update(types.Vm(delete_protected=True))
    with pytest.raises(Error, match="Delete protection is enabled") as caught:
        vm.remove()
    assert caught.value.code == 409
    vm.update(types.Vm(delete_protected=False))
    vm.remove()


def test_pinned_without_hosts_is_not_user_migratable(sdk: Connection) -> None:
    vm = sdk.system_service().vms_service().vm_service("web3")
    assert vm.get().placement_policy.affinity == types.VmAffinity.USER_MIGRATABLE
    vm.update(types.Vm(placement_policy=types.VmPlacementPolicy(affinity=types.VmAffinity.PINNED)))
    assert vm.get().placement_policy.affinity == types.VmAffinity.PINNED
    with pytest.raises(Error, match="pinned to Host"):
        vm.migrate(force=True)
