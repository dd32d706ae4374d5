"""Puts a vector's question to our policy units as the engine does: over XML-RPC, to a running proxy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import WITHOUT_PAST, Publisher
from tools.conformance.judge import difference_of_sets, difference_of_tiers, tiers_of
from tools.conformance.vector import Vector

#: The unit that answers a kind of vector.
_FILTERS = {"vm_affinity_filter": "AffinityFilter", "vm_to_host_filter": "HostAffinityFilter"}
_WEIGHTS = {
    "vm_affinity_weight": "SoftAffinityWeight",
    "vm_to_host_weight": "HostAffinityWeight",
    "ha_weight": "HaReservationWeight",
}


class ServedUnits:
    """Our units behind a proxy, deciding on whatever vector is published."""

    def __init__(self, publisher: Publisher, proxy: ServerProxy) -> None:
        self._publisher = publisher
        self._proxy = proxy

    def difference(self, vector: Vector) -> str | None:
        """What is wrong with the answer over XML-RPC; None if it is right, or the engine could not ask."""
        if vector.kind not in {*_FILTERS, *_WEIGHTS} or not _can_be_asked(vector):
            return None
        self._publisher.publish(vector.snapshot)
        (vm,) = vector.request["vms"]
        hosts = vector.request["candidate_hosts"]
        reply: Any
        if vector.kind in _FILTERS:
            reply = self._proxy.runFilters([_FILTERS[vector.kind]], hosts, vm, {})
            why = difference_of_sets(vector, "hosts", reply["result"])
        else:
            reply = self._proxy.runCostFunctions([[_WEIGHTS[vector.kind], 1]], hosts, vm, _properties(vector))
            ranks = {host: rank for host, rank, _ in reply["result"]}
            why = difference_of_tiers(vector, tiers_of(ranks))
        return f"over XML-RPC: {reply['plugin_errors'] or why}" if why else None


@contextmanager
def served_units() -> Iterator[ServedUnits]:
    with tempfile.TemporaryDirectory() as folder:
        publisher = Publisher(Path(folder), inventory=WITHOUT_PAST)
        with running_proxy(publisher.environment) as proxy:
            yield ServedUnits(publisher, proxy)


def _can_be_asked(vector: Vector) -> bool:
    """Whether the engine can put this question to a proxy, and means the rule alone by it.

    It asks for one VM at a time and cannot say that hard affinity is to be ignored. Where a VM leaves a
    host that its positive peers run on too, the unit knows that the whole group is being moved.
    """
    if len(vector.request["vms"]) != 1 or vector.request.get("ignore_hard_vm_affinity"):
        return False
    asked = vector.snapshot.vm_by_id.get(vector.request["vms"][0])
    if asked is None or asked.host is None or asked.host in vector.request["candidate_hosts"]:
        return True
    return not any(
        peer in vector.snapshot.vm_by_id and vector.snapshot.vm_by_id[peer].host == asked.host
        for group in vector.snapshot.groups_of_vm.get(asked.id, ())
        if group.vms_rule.hard and group.vms_rule.positive
        for peer in vector.snapshot.group_vms[group.id]
        if peer != asked.id
    )


def _properties(vector: Vector) -> dict[str, str]:
    scale_down = vector.request.get("scale_down")
    scaled = {} if scale_down is None else {"ha_weight_scale_down": str(scale_down)}
    return {"ha_measure": "vms", **scaled}
