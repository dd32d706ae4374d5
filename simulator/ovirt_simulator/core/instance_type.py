"""Instance types: hardware that VMs may be given as a whole."""

from __future__ import annotations

from msgspec.structs import replace

from .entities import Record, Vm


class InstanceType(Record, frozen=True):
    """The defaults are those of an engine for what nobody has said anything of."""

    id: str
    name: str
    description: str = ""
    memory_mb: int = 1024
    sockets: int = 1
    cores: int = 1
    threads: int = 1
    ha: bool = False
    #: The more, the earlier the engine restarts its VMs.
    priority: int = 1

    def applied(self, vm: Vm) -> Vm:
        """Give the VM with this hardware."""
        return replace(
            vm,
            memory_mb=self.memory_mb,
            guaranteed_mb=self.memory_mb,
            vcpus=self.sockets * self.cores * self.threads,
            ha=self.ha,
            ha_priority=self.priority,
            threads_per_core=self.threads,
            particulars=replace(vm.particulars, cores=self.cores, max_memory_mb=None),
        )


def _predefined(type_id: str, name: str, memory_mb: int, sockets: int, word: str = "") -> InstanceType:
    return InstanceType(
        id=type_id,
        name=name,
        description=f"{word or name} instance type",
        memory_mb=memory_mb,
        sockets=sockets,
        priority=0,
    )


_ALL = (
    _predefined("00000003-0003-0003-0003-0000000000be", "Tiny", 512, 1),
    _predefined("00000005-0005-0005-0005-0000000002e6", "Small", 2048, 1),
    _predefined("00000007-0007-0007-0007-00000000010a", "Medium", 4096, 2),
    _predefined("00000009-0009-0009-0009-0000000000f1", "Large", 8192, 2),
    _predefined("0000000b-000b-000b-000b-00000000021f", "XLarge", 16384, 4, "Extra Large"),
)
#: What every engine begins with, by id: its packaging/dbscripts/data/01100_insert_vm_static.sql.
PREDEFINED = {each.id: each for each in _ALL}
