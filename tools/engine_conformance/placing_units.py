"""The engine's filters, weights and selectors, and our copies of them."""

from __future__ import annotations

from ovirt_placement.rules.built_in.affinity import (
    filter_by_host_groups,
    filter_by_vm_groups,
    score_by_host_groups,
    score_by_vm_groups,
)
from ovirt_placement.rules.built_in.filters import (
    filter_by_cpu_load,
    filter_by_cpus,
    filter_by_memory,
    filter_by_pins,
)
from ovirt_placement.rules.built_in.weights import score_by_ha_vms, score_by_preference
from ovirt_placement.rules.load import score_by_cpu, score_by_memory
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
        product=Copy(product.accepted(filter_by_memory), (PHYSICAL_MEMORY_AS_TOLD,)),
        simulator=Copy(simulator.accepted("memory")),
    ),
    filter_unit(
        "cpu",
        "CPUPolicyUnit",
        product=Copy(product.accepted(filter_by_cpus)),
        simulator=Copy(simulator.accepted("cpu")),
    ),
    filter_unit(
        "cpu-overloaded",
        "CpuOverloadPolicyUnit",
        overloading,
        product=Copy(product.accepted(filter_by_cpu_load), (OVERLOADED_SINCE,)),
        simulator=Copy(simulator.not_overloaded),
    ),
    filter_unit(
        "pin-to-host",
        "PinToHostPolicyUnit",
        product=Copy(product.accepted(filter_by_pins)),
        simulator=Copy(simulator.accepted("pinned")),
    ),
    filter_unit(
        "vm-affinity",
        "VmAffinityFilterPolicyUnit",
        product=Copy(product.accepted(filter_by_vm_groups), (CRASH_OF_A_HOST_ASIDE,)),
        simulator=Copy(simulator.accepted("vm_affinity"), (CRASH_OF_A_HOST_ASIDE,)),
    ),
    filter_unit(
        "vm-to-host",
        "VmToHostAffinityFilterPolicyUnit",
        product=Copy(product.accepted(filter_by_host_groups)),
        simulator=Copy(simulator.accepted("vm_to_host")),
    ),
)

WEIGHTS = (
    weight_unit(
        "even-cpu",
        "EvenDistributionCPUWeightPolicyUnit",
        _RATIO,
        product=Copy(product.scores(score_by_cpu)),
        simulator=Copy(simulator.scores("even_cpu")),
    ),
    weight_unit(
        "even-memory",
        "EvenDistributionMemoryWeightPolicyUnit",
        product=Copy(product.scores(score_by_memory)),
        simulator=Copy(simulator.scores("even_memory")),
    ),
    weight_unit(
        "preferred-hosts",
        "PreferredHostsWeightPolicyUnit",
        product=Copy(product.scores(score_by_preference)),
        simulator=Copy(simulator.scores("preferred_hosts")),
    ),
    weight_unit(
        "ha-weight",
        "HaReservationWeightPolicyUnit",
        _SCALE_DOWN,
        product=Copy(product.scores(score_by_ha_vms)),
        simulator=Copy(simulator.scores("ha_reservation")),
    ),
    weight_unit(
        "vm-affinity-weight",
        "VmAffinityWeightPolicyUnit",
        product=Copy(product.scores(score_by_vm_groups)),
        simulator=Copy(simulator.scores("vm_affinity")),
    ),
    weight_unit(
        "vm-to-host-weight",
        "VmToHostAffinityWeightPolicyUnit",
        product=Copy(product.scores(score_by_host_groups)),
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
