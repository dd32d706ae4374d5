"""How weights that the engine asks for VM by VM become one: they are added, host by host.

Source: PolicyUnitImpl.score of a group of VMs. The sums come in the order of a HashMap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ovirt_placement.rules.java.ids import KeyOrder


def summed(weights: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of the weights of several VMs, in the order in which the engine goes on with them."""
    order, sums = KeyOrder(), Counter[str]()
    for of_one in weights:
        for host, weight in of_one.items():
            order.merge(host)
            sums[host] += weight
    return {host: sums[host] for host in order.listed()}
