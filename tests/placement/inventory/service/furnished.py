"""VMs with disks, NICs and owners, and a follower that knows which of these keys refer to."""

from msgspec.structs import replace

from ovirt_placement.inventory.on_demand import Demands, referred
from ovirt_placement.model import Disk, Network, Nic, Snapshot, Vm, VnicProfile
from ovirt_placement.model.record import LEVELS, STICKY
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from tests.placement.inventory.stage import Stage

EVERY_LEVEL = frozenset(LEVELS) - {STICKY}
#: In the order of their names, as the engine lists them.
NETWORKS = (Network(id="back", name="back"), Network(id="front", name="front"))
PROFILES = (
    VnicProfile(id="bulk", name="bulk", network="back"),
    VnicProfile(id="gold", name="gold", network="front"),
)
DESCRIBED = {"description": "x"}


def furnished(vm: Vm, number: int) -> Vm:
    return replace(
        vm,
        owner=f"user{number % 3}",
        disks=(
            Disk(id=f"{vm.id}-data", bootable=False, profile="slow"),
            Disk(id=f"{vm.id}-root", bootable=True, profile="fast"),
        ),
        nics=(
            Nic(id=f"{vm.id}-nic2", name="nic2", vnic_profile="bulk"),
            Nic(id=f"{vm.id}-nic1", name="nic1", vnic_profile=("gold", None)[number % 2]),
        ),
    )


def furnished_state() -> Snapshot:
    state = generate(Sizes(clusters=2, hosts=6, vms=30, groups=4), 3)
    vms = tuple(furnished(vm, number) for number, vm in enumerate(state.vms))
    return replace(state, vms=vms, networks=NETWORKS, vnic_profiles=PROFILES)


def watch(stage: Stage, *levels: str) -> None:
    """Set keys on these levels, and let what they refer to be read."""
    stage.follower.demands = Demands(referred(levels))
    for _ in range(2):
        stage.turn()


def known(stage: Stage, vm_id: str) -> Vm:
    return stage.follower.snapshot().vm_by_id[vm_id]


def some_vm(stage: Stage) -> Vm:
    return as_state_files_have(next(iter(stage.engine.queries.state.vms.values())))


def as_state_files_have(vm: Vm) -> Vm:
    """Without what only the simulator knows of disks and NICs."""
    disks = (Disk(id=one.id, bootable=one.bootable, profile=one.profile) for one in vm.disks)
    nics = (Nic(id=one.id, name=one.name, vnic_profile=one.vnic_profile) for one in vm.nics)
    return replace(vm, disks=tuple(disks), nics=tuple(nics))


def turns(stage: Stage, number: int = 4) -> None:
    for _ in range(number):
        stage.turn()


def refuse(stage: Stage, path: str) -> None:
    """Let every request that fits fail from now on; the tests count the failures."""
    stage.server.disturbances.add(Disturbance(path=path, status=500, times=None))
