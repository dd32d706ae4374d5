"""The one form of every question about VMs on hosts: what goes together, what apart, what a host can take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ovirt_placement.model.record import Record


class Resources(Record, frozen=True):
    """What a host can take, or VMs need: MiB of memory, and CPU in any unit that both share."""

    memory: int = 0
    cpu: int = 0

    def cover(self, need: Resources) -> bool:
        return need.memory <= self.memory and need.cpu <= self.cpu

    def without(self, need: Resources) -> Resources:
        return Resources(self.memory - need.memory, self.cpu - need.cpu)


NOTHING = Resources()

#: What each host can take, by its id.
Hosts = Mapping[str, Resources]


class Block(Record, frozen=True):
    """VMs that go to one host together, whichever."""

    vms: tuple[str, ...]
    need: Resources = NOTHING
    #: Hosts that it is restricted to; None for no restriction.
    allowed: frozenset[str] | None = None
    forbidden: frozenset[str] = frozenset()
    #: Blocks that share one of these tags cannot share a host.
    apart: frozenset[str] = frozenset()

    def admits(self, host: str) -> bool:
        """Whether the host is one that it may go to, whatever room there is."""
        return (self.allowed is None or host in self.allowed) and host not in self.forbidden

    def narrowed(self, only: frozenset[str] | None, never: frozenset[str]) -> Block:
        """The same with further hosts left out: all but `only`, if that is given, and `never`."""
        allowed = self.allowed if only is None else only if self.allowed is None else self.allowed & only
        return Block(self.vms, self.need, allowed, self.forbidden | never, self.apart)


def homes_of(blocks: Iterable[Block], hosts: Hosts) -> list[frozenset[str]]:
    """The hosts that each block may go to and that hold it, were it the only one; like blocks share a set."""
    everywhere = frozenset(hosts)
    found: dict[tuple[frozenset[str] | None, frozenset[str], Resources], frozenset[str]] = {}
    homes = []
    for block in blocks:
        asked = block.allowed, block.forbidden, block.need
        if asked not in found:
            found[asked] = _homes(block, hosts, everywhere)
        homes.append(found[asked])
    return homes


def _homes(block: Block, hosts: Hosts, everywhere: frozenset[str]) -> frozenset[str]:
    admitted = everywhere if block.allowed is None else everywhere & block.allowed
    if block.forbidden:
        admitted -= block.forbidden
    if block.need == NOTHING:
        return admitted
    return frozenset(host for host in admitted if hosts[host].cover(block.need))
