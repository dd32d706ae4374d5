"""What is expected on each host and not shown there yet, in sum."""

from __future__ import annotations

from collections import Counter

from ovirt_placement.model import Vm
from ovirt_placement.rules.cpus import vm_load
from ovirt_placement.rules.memory import required_mb


class Promised:
    """Memory and CPUs that VMs will take that are expected on hosts."""

    def __init__(self) -> None:
        self.memory_mb: Counter[str] = Counter()
        #: Of one CPU.
        self.cpu_percent: Counter[str] = Counter()
        #: Each host of which something was changed, the latest last: who has followed goes on from there.
        self.changes: list[str] = []

    def add(self, host: str, vm: Vm) -> None:
        self._change(host, vm, 1)

    def remove(self, host: str, vm: Vm) -> None:
        self._change(host, vm, -1)

    def _change(self, host: str, vm: Vm, sign: int) -> None:
        self.memory_mb[host] += sign * required_mb(vm)
        self.cpu_percent[host] += sign * vm_load(vm)
        self.changes.append(host)
