"""Where VMs are, as a placement rule is asked about some that go to one host together."""

from __future__ import annotations

from ovirt_placement.rules.placement import Placement


class Arriving:
    """A placement in which some VMs have come to a host already, from wherever they were."""

    def __init__(self, placement: Placement, vms: tuple[str, ...], host: str) -> None:
        self._placement = placement
        self._vms = frozenset(vms)
        self._there = (host,)

    def runs_on(self, vm: str) -> str | None:
        return self._there[0] if vm in self._vms else self._placement.runs_on(vm)

    def destinations(self, vm: str) -> tuple[str, ...]:
        return self._there if vm in self._vms else self._placement.destinations(vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        return self._there if vm in self._vms else self._placement.occupied(vm)
