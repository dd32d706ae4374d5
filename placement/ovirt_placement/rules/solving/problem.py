"""The one form of every question about VMs on hosts, and the bound of the work on it, counted in steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from ovirt_placement.model.record import Record


class BudgetSpentError(Exception):
    """The work allowed is done and the question still open."""


class Budget:
    """Steps that a search may still take; shared by all searches that answer one question."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def left(self) -> int:
        """Steps that are left; below 0 where more was asked for than there was."""
        return self._left

    def spend(self, steps: int = 1) -> None:
        """Raises `BudgetSpentError` when nothing is left."""
        self._left -= steps
        if self._left < 0:
            raise BudgetSpentError

    @contextmanager
    def share(self, steps: int) -> Iterator[Budget]:
        """At most this many steps for one search among many; what it leaves comes back."""
        share = Budget(min(steps, self._left))
        self._left -= share._left
        try:
            yield share
        finally:
            self._left += max(0, share._left)


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
