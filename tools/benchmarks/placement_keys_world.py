"""A cluster with placement keys that never rests, published as by the inventory a few times a second."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, Host, PlacementKey, Snapshot
from tests import builders
from tests.plugins.published import Publisher

VMS_A_HOST = 20
FROZEN_KEYS = 8
#: Of this many names that customers use, each VM has some.
NAMES = 40
#: Names that every host has.
NODE_NAMES = 16
#: VMs that calls are about: each with keys of its own.
PLACED = 200
VERSIONS_PER_SECOND = 3
#: From one version to the next this many VMs migrate, and one each starts and stops.
MIGRATIONS = 5

_SPECIAL = ("#RAM", "#CPU", "#LOAD")


def hosts(number: int) -> list[str]:
    return [f"00000000-0000-0000-0000-{each:012}" for each in range(number)]


def placed() -> list[str]:
    return [f"new{number}" for number in range(PLACED)]


class World:
    """The cluster as it is now; `versions` makes it go on."""

    def __init__(self, host_count: int, key_count: int) -> None:
        self._dice = random.Random(1)
        self._hosts = tuple(self._host(host) for host in hosts(host_count))
        ids = [host.id for host in self._hosts]
        self._vms = {f"v{number}": ids[number % host_count] for number in range(host_count * VMS_A_HOST)}
        self._records = {vm: self._record(vm) for vm in self._vms}
        self._known = {vm: builders.vm(vm, host, vcpus=2) for vm, host in self._vms.items()}
        self._known |= {vm: builders.vm(vm) for vm in placed()}
        self._keys = (*self._node_keys(), *(key for vm in placed() for key in self._wanted(vm, key_count)))

    def versions(self) -> Iterator[Snapshot]:
        """The cluster, and what becomes of it."""
        started = count(len(self._vms))
        while True:
            yield Snapshot(
                clusters=(builders.cluster(),), hosts=self._hosts, vms=tuple(self._known.values()),
                affinity_groups=(), affinity_labels=(), placement_keys=self._keys,
                frozen_keys=tuple(self._records.values()),
            )  # fmt: skip
            running = self._dice.sample(list(self._records), MIGRATIONS + 1)
            for vm in running[:MIGRATIONS]:
                self._known[vm] = replace(self._known[vm], host=self._dice.choice(self._hosts).id)
            del self._records[running[-1]], self._known[running[-1]]
            vm = f"v{next(started)}"
            self._known[vm] = builders.vm(vm, self._dice.choice(self._hosts).id)
            self._records[vm] = self._record(vm)

    def _host(self, host: str) -> Host:
        """A large host; no two have quite the same memory."""
        memory_mb = 2**20 + self._dice.randrange(1000)
        return builders.host(host, memory_mb=memory_mb, free_mb=2**19, cores=64)

    def _record(self, vm: str) -> FrozenKeys:
        names = self._dice.sample(range(NAMES), FROZEN_KEYS)
        return FrozenKeys(vm=vm, keys=tuple((f"C{name}", round(self._dice.random(), 1)) for name in names))

    def _node_keys(self) -> Iterator[PlacementKey]:
        for host in self._hosts:
            for name in range(NODE_NAMES):
                value = round(self._dice.random(), 2)
                yield PlacementKey(
                    level="node", resource=host.id, key_class="system", name=f"S{name}", value=value
                )

    def _wanted(self, vm: str, key_count: int) -> Iterator[PlacementKey]:
        """Half of a VM's keys are the operator's, and of these a quarter special; half are the customer's."""
        half = key_count // 2
        special = min(half // 4, len(_SPECIAL))
        names = [f"S{name}" for name in self._dice.sample(range(NODE_NAMES), half - special)]
        customers = [f"C{name}" for name in self._dice.sample(range(NAMES), half)]
        for key_class, of_class in (("system", [*_SPECIAL[:special], *names]), ("customer", customers)):
            for name in of_class:
                yield PlacementKey(
                    level="server", resource=vm, key_class=key_class, name=name,
                    value=round(self._dice.random(), 2), weight=self._dice.choice((-20.0, 10.0, 33.3)),
                )  # fmt: skip


def main(folder: Path, host_count: int, key_count: int) -> None:
    """Publish for ever."""
    publisher = Publisher(folder)
    for number, snapshot in enumerate(World(host_count, key_count).versions()):
        due = time.monotonic() + 1 / VERSIONS_PER_SECOND
        publisher.publish(snapshot)
        if number == 0:
            print("ready", flush=True)
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
