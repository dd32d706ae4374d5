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

    def applied(self, vm: Vm) -> Vm:
        """Give the VM with this hardware."""
        return replace(
            vm,
            memory_mb=self.memory_mb,
            guaranteed_mb=self.memory_mb,
            vcpus=self.sockets * self.cores * self.threads,
            ha=self.ha,
            threads_per_core=self.threads,
            particulars=replace(vm.particulars, cores=self.cores, max_memory_mb=None),
        )
