"""The engine's filters, weights and selectors, and our copies of them."""

from __future__ import annotations

from tools.engine_conformance import product, simulator
from tools.engine_conformance.requests import overloading, placing_with, selecting
from tools.engine_conformance.switches import CRASH_OF_A_HOST_ASIDE, OVERLOADED_SINCE, PHYSICAL_MEMORY_AS_TOLD
from tools.engine_conformance.unit import Copy, Unit, filter_unit, weight_unit

_RATIO = placing_with(
    VCpuToPhysicalCpuRatio=lambda random: random.choice((None, None, None, "0.5", "1", "2"))
)
_SCALE_DOWN = placing_with(ScaleDown=lambda random: random.choice((None, None, "1", "3", "10", "100")))

FILTERS = (
    filter_unit(
        "memory",
        "MemoryPolicyUnit",
        product=Copy(product.accepted("built_in.memory"), (PHYSICAL_MEMORY_AS_TOLD,)),
        simulator=Copy(simulator.accepted("memory")),
    ),
    filter_unit(
        "cpu",
        "CPUPolicyUnit",
        product=Copy(product.accepted("built_in.cpu")),
        simulator=Copy(simulator.accepted("cpu")),
    ),
    filter_unit(
        "cpu-overloaded",
        "CpuOverloadPolicyUnit",
        overloading,
        product=Copy(product.accepted("built_in.cpu_overloaded"), (OVERLOADED_SINCE,)),
        simulator=Copy(simulator.not_overloaded),
    ),
    filter_unit(
        "pin-to-host",
        "PinToHostPolicyUnit",
        product=Copy(product.accepted("built_in.pinning")),
        simulator=Copy(simulator.accepted("pinned")),
    ),
    filter_unit(
        "vm-affinity",
        "VmAffinityFilterPolicyUnit",
        product=Copy(product.accepted("built_in.vm_affinity_groups"), (CRASH_OF_A_HOST_ASIDE,)),
        simulator=Copy(simulator.accepted("vm_affinity"), (CRASH_OF_A_HOST_ASIDE,)),
    ),
    filter_unit(
        "vm-to-host",
        "VmToHostAffinityFilterPolicyUnit",
        product=Copy(product.accepted("built_in.vm_to_hosts_affinity_groups")),
        simulator=Copy(simulator.accepted("vm_to_host")),
    ),
)

WEIGHTS = (
    weight_unit(
        "even-cpu",
        "EvenDistributionCPUWeightPolicyUnit",
        _RATIO,
        product=Copy(product.scores("load.even_cpu")),
        simulator=Copy(simulator.scores("even_cpu")),
    ),
    weight_unit(
        "even-memory",
        "EvenDistributionMemoryWeightPolicyUnit",
        product=Copy(product.scores("load.even_memory")),
        simulator=Copy(simulator.scores("even_memory")),
    ),
    weight_unit(
        "preferred-hosts",
        "PreferredHostsWeightPolicyUnit",
        product=Copy(product.scores("built_in.preferred_hosts")),
        simulator=Copy(simulator.scores("preferred_hosts")),
    ),
    weight_unit(
        "ha-weight",
        "HaReservationWeightPolicyUnit",
        _SCALE_DOWN,
        product=Copy(product.scores("built_in.ha_weight")),
        simulator=Copy(simulator.scores("ha_reservation")),
    ),
    weight_unit(
        "vm-affinity-weight",
        "VmAffinityWeightPolicyUnit",
        product=Copy(product.scores("built_in.vm_affinity_weight")),
        simulator=Copy(simulator.scores("vm_affinity")),
    ),
    weight_unit(
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
        {"product": Copy(product.best_by_rank), "simulator": Copy(simulator.best_by_rank)},
        request={"unit": "RankSelectorPolicyUnit"},
    ),
)
