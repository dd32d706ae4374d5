"""What maintenance asks of a VM, as a constraint like those of rules: to leave hosts that are to be empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import StepPurpose
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.forms import Allowed
from ovirt_placement.rules.placement import Placement


class Leaving(Constraint, frozen=True, kw_only=True):
    """VMs, and the hosts that they are to leave."""

    family: ClassVar[str] = StepPurpose.MAINTENANCE
    asks: ClassVar[str] = "off hosts that are to be empty"
    positive: ClassVar[bool] = False

    hosts: frozenset[str]

    @property
    def form(self) -> Allowed:
        return Allowed(self.hosts, positive=False)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        return tuple(vm for vm, host in self.running(placement) if host in self.hosts)

    def surplus(self, placement: Placement) -> int:
        return len(self.offenders(placement))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return host not in self.hosts


def leaving(snapshot: Snapshot, hosts: Iterable[str]) -> Iterator[Leaving]:
    """One for each VM that runs on any of these hosts: each may leave though another cannot."""
    off = frozenset(hosts)
    for host in off:
        for vm in snapshot.vms_of_host.get(host, ()):
            yield Leaving(groups=(), vms=(vm.id,), hard=True, priority=0.0, hosts=off)
