"""What VMs run with, of which the state knows an id: profiles.

Each is there if a VM has it, and is named like its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ovirt_placement.model import Vm
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.find import present

#: The ids of such things that a VM has.
Used = Callable[[Vm], Iterable[str | None]]
Render = Callable[[str, str, Links], str]


class Named:
    """One such collection: its list, and each of its entities."""

    def __init__(self, collection: str, render: Render, used: Used) -> None:
        self._collection = collection
        self._render = render
        self._used = used

    def list_all(self, call: Call) -> list[str]:
        return [
            self._render(entity_id, name, call.links(self._collection, entity_id))
            for entity_id, name in self._names(call).items()
        ]

    def get(self, call: Call, entity_id: str) -> str:
        name = present(self._names(call).get(entity_id))
        return self._render(entity_id, name, call.links(self._collection, entity_id))

    def _names(self, call: Call) -> dict[str, str]:
        """Give the names by id."""

        def compute() -> dict[str, str]:
            used = (entity_id for vm in call.queries.vms() for entity_id in self._used(vm))
            return {entity_id: entity_id for entity_id in used if entity_id is not None}

        return call.once(self._collection, compute)


CPU_PROFILES = Named("cpuprofiles", infrastructure.cpu_profile, lambda vm: [vm.cpu_profile])
DISK_PROFILES = Named(
    "diskprofiles", infrastructure.disk_profile, lambda vm: [disk.profile for disk in vm.disks]
)
