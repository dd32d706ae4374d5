"""What is compared: each of the engine's units, the questions for it, and our copies with their switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.engine import product, simulator
from tests.engine.question import Question
from tests.engine.reading import Reading, as_hosts, as_is, as_tiers
from tests.engine.requests import Asking, placing, placing_with, questions, selecting
from tests.engine.switches import CRASH_OF_A_HOST_ASIDE, Switch


@dataclass(frozen=True)
class Copy:
    """One of our answers to what a unit of the engine answers."""

    answer: Callable[[Question], Any]
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True)
class Unit:
    name: str
    kind: str
    asking: Asking
    copies: Mapping[str, Copy]
    read: Callable[[Question, Any], Reading] = as_is
    #: How many questions make a whole run.
    number: int = 20_000
    #: What is the same in all requests.
    request: Mapping[str, Any] = field(default_factory=dict)

    def questions(self, seed: int, number: int) -> Iterator[Question]:
        return questions(self.kind, self.asking, seed, number, **self.request)


def _filter(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "filter", asking, copies, as_hosts, request={"unit": engine_class})


def _weight(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "weight", asking, copies, as_tiers, request={"unit": engine_class})


_RATIO = placing_with(VCpuToPhysicalCpuRatio=lambda random: random.choice((None, None, None, "0.5", "1", "2")))
_SCALE_DOWN = placing_with(ScaleDown=lambda random: random.choice((None, None, "1", "3", "10", "100")))

FILTERS = (
    _filter(
        "memory",
        "MemoryPolicyUnit",
        product=Copy(product.accepted("built_in.memory")),
        simulator=Copy(simulator.accepted("memory")),
    ),
    _filter(
        "cpu",
        "CPUPolicyUnit",
        product=Copy(product.accepted("built_in.cpu")),
        simulator=Copy(simulator.accepted("cpu")),
    ),
    _filter(
        "pin-to-host",
        "PinToHostPolicyUnit",
        product=Copy(product.accepted("built_in.pinning")),
        simulator=Copy(simulator.accepted("pinned")),
    ),
    _filter(
        "vm-affinity",
        "VmAffinityFilterPolicyUnit",
        product=Copy(product.accepted("built_in.vm_affinity_groups"), (CRASH_OF_A_HOST_ASIDE,)),
        simulator=Copy(simulator.accepted("vm_affinity"), (CRASH_OF_A_HOST_ASIDE,)),
    ),
    _filter(
        "vm-to-host",
        "VmToHostAffinityFilterPolicyUnit",
        product=Copy(product.accepted("built_in.vm_to_hosts_affinity_groups")),
        simulator=Copy(simulator.accepted("vm_to_host")),
    ),
)

WEIGHTS = (
    _weight(
        "even-cpu",
        "EvenDistributionCPUWeightPolicyUnit",
        _RATIO,
        product=Copy(product.scores("load.even_cpu")),
        simulator=Copy(simulator.scores("even_cpu")),
    ),
    _weight(
        "even-memory",
        "EvenDistributionMemoryWeightPolicyUnit",
        product=Copy(product.scores("load.even_memory")),
        simulator=Copy(simulator.scores("even_memory")),
    ),
    _weight(
        "preferred-hosts",
        "PreferredHostsWeightPolicyUnit",
        product=Copy(product.scores("built_in.preferred_hosts")),
        simulator=Copy(simulator.scores("preferred_hosts")),
    ),
    _weight(
        "ha-weight",
        "HaReservationWeightPolicyUnit",
        _SCALE_DOWN,
        product=Copy(product.scores("built_in.ha_weight")),
        simulator=Copy(simulator.scores("ha_reservation")),
    ),
    _weight(
        "vm-affinity-weight",
        "VmAffinityWeightPolicyUnit",
        product=Copy(product.scores("built_in.vm_affinity_weight")),
        simulator=Copy(simulator.scores("vm_affinity")),
    ),
    _weight(
        "vm-to-host-weight",
        "VmToHostAffinityWeightPolicyUnit",
        product=Copy(product.scores("built_in.vm_to_hosts_weight")),
        simulator=Copy(simulator.scores("vm_to_host")),
    ),
)

SELECTORS = (
    Unit(
        "rank-selector",
        "selector",
        selecting,
        {"product": Copy(product.best_by_rank)},
        request={"unit": "RankSelectorPolicyUnit"},
    ),
)

UNITS = {unit.name: unit for unit in (*FILTERS, *WEIGHTS, *SELECTORS)}
