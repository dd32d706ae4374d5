"""What the failure of some hosts reckons with, as bits: sets that have none in common fail independently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.examination import Measure
from ovirt_placement.rules.failover.outcomes import Survival, Unknown


class Footprints:
    """Numbers the hosts that count in one check."""

    def __init__(self, snapshot: Snapshot, measure: Measure) -> None:
        self._number = {host: number for number, host in enumerate(measure.hosts)}
        self._everything = (1 << len(self._number)) - 1
        self._separable = measure.separable
        self._other_ends = _other_ends(snapshot)

    def of(self, outcome: Survival | Unknown) -> int:
        """The failing hosts, the homes of their VMs, and the other ends of migrations from and to them.

        Everything, where that is not known, or starts have to do with each other wherever they are.
        """
        if isinstance(outcome, Unknown) or not self._separable:
            return self._everything
        ends = (end for host in outcome.hosts for end in self._other_ends.get(host, ()))
        mask = 0
        for host in {*outcome.hosts, *outcome.homes.values(), *ends}:
            if host in self._number:
                mask |= 1 << self._number[host]
        return mask

    def settled(self, failed: Sequence[str]) -> bool:
        """Whether nothing is on its way from or to those hosts, and other starts elsewhere matter not."""
        return self._separable and self._other_ends.keys().isdisjoint(failed)

    def users(self, masks: Iterable[int]) -> list[int]:
        """By host, which of some outcomes reckon with it, as bits."""
        found = [0] * len(self._number)
        for at, mask in enumerate(masks):
            for host in members_of(mask):
                found[host] |= 1 << at
        return found


def members_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, in ascending order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _other_ends(snapshot: Snapshot) -> dict[str, set[str]]:
    """By host that VMs are on their way from or to, the hosts at the other ends."""
    found: dict[str, set[str]] = {}
    for vm, targets in snapshot.pending_hosts.items():
        known = snapshot.vm_by_id.get(vm)
        ends = {*targets} if known is None or known.host is None else {*targets, known.host}
        for end in ends:
            found.setdefault(end, set()).update(ends)
    return found
