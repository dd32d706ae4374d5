"""Since when hosts have been overloaded, as far as this process has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.load.even_distribution import limits_of, overloaded

_SECONDS_PER_MINUTE = 60


class Overload:
    """What is overloaded at the first look is taken to have been so for long.

    A process of the old proxy never has a second one.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._looked = False

    def minutes(
        self, snapshot: Snapshot, hosts: tuple[str, ...], parameters: Mapping[str, str]
    ) -> dict[str, float]:
        """For how many minutes each of the hosts has been overloaded that is so now."""
        now = self._clock()
        start = now if self._looked else float("-inf")
        self._looked = True
        others = {host: since for host, since in self._since.items() if host not in hosts}
        busy = {
            host: self._since.get(host, start) for host in overloaded(snapshot, hosts, limits_of(parameters))
        }
        self._since = others | busy
        return {host: (now - since) / _SECONDS_PER_MINUTE for host, since in busy.items()}
