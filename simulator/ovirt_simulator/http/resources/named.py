"""What VMs are made from and run with, of which the state knows an id: instance types and profiles.

Each is there if a VM has it, and is named like its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ovirt_placement.model import Vm
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.search.records import InstanceType

#: The ids of such things that a VM has.
Used = Callable[[Vm], Iterable[str | None]]
Render = Callable[[str, str, Links], str]


class Named:
    """One such collection: its list, and each of its entities."""

    def __init__(
        self,
        collection: str,
        render: Render,
        used: Used,
        always: dict[str, str] | None = None,
        *,
        searched: str | None = None,
    ) -> None:
        self._collection = collection
        #: The object that searches take its entities for, if it can be searched.
        self._searched = searched
        self._render = render
        self._used = used
        self._always = always or {}

    def list_all(self, call: Call) -> list[str]:
        found = [InstanceType(entity_id, name) for entity_id, name in self._names(call).items()]
        if self._searched is not None:
            found = searched(call, self._searched, found)
        return [self._render(one.id, one.name, call.links(self._collection, one.id)) for one in found]

    def get(self, call: Call, entity_id: str) -> str:
        name = present(self._names(call).get(entity_id))
        return self._render(entity_id, name, call.links(self._collection, entity_id))

    def _names(self, call: Call) -> dict[str, str]:
        """Give the names by id."""

        def compute() -> dict[str, str]:
            used = (entity_id for vm in call.queries.vms() for entity_id in self._used(vm))
            return self._always | {entity_id: entity_id for entity_id in used if entity_id is not None}

        return call.once(self._collection, compute)


INSTANCE_TYPES = Named(
    "instancetypes", infrastructure.instance_type, lambda vm: [vm.instance_type], searched="INSTANCETYPE"
)
CPU_PROFILES = Named("cpuprofiles", infrastructure.cpu_profile, lambda vm: [vm.cpu_profile])
DISK_PROFILES = Named(
    "diskprofiles", infrastructure.disk_profile, lambda vm: [disk.profile for disk in vm.disks]
)
