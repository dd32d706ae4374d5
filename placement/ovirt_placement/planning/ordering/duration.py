"""How long migrations are thought to take: by the memory in use, how fast it changes, and the bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ovirt_placement.model import Vm

#: A guest that writes faster than can be sent is slowed down, or stopped for the rest, after this number of
#: rounds.
_MOST_ROUNDS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """What a migration has at its disposal. The engine does not report it; these are cautious assumptions."""

    #: MiB per second that a host sends or receives, shared by the migrations that it makes at once: a network
    #: of 1 Gbit/s, less what its frames take.
    host_mb_per_second: float = 112.0
    #: Migrations that share it: as many as hosts make at once under most of the engine's migration policies.
    at_once: int = 2
    #: What each takes besides: scheduling, the target's preparations, and until the engine has noticed.
    overhead_seconds: float = 10.0


def migration_seconds(memory_mb: float, pace: Pace, dirty_mb_per_second: float = 0.0) -> float:
    """The seconds that it takes to migrate so much memory in use, of which so much is written meanwhile.

    Memory that is written after it was sent is sent again, in rounds, each of which lasts as long as the
    guest took to spoil what the one before had sent.
    """
    bandwidth = pace.host_mb_per_second / pace.at_once
    spoilt = dirty_mb_per_second / bandwidth
    rounds = sum(spoilt**number for number in range(_MOST_ROUNDS))
    return pace.overhead_seconds + memory_mb / bandwidth * rounds


def step_seconds(vms: Iterable[Vm], pace: Pace, dirty_mb_per_second: float = 0.0) -> float:
    """The same of VMs that leave a host for another by one request, a few at once."""
    each = [migration_seconds(_in_use_mb(vm), pace, dirty_mb_per_second) for vm in vms]
    return max(max(each), sum(each) / pace.at_once)


def _in_use_mb(vm: Vm) -> float:
    """All of it, where nobody knows."""
    percent = 100.0 if vm.usage_mem_percent is None else vm.usage_mem_percent
    return vm.memory_mb * percent / 100.0
