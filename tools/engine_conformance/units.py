"""All that is compared, by name: the engine's units with our copies, our own, and those without a copy."""

from __future__ import annotations

from ovirt_placement.rules.affinity import host_filter, host_weight, vm_filter, vm_weight
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
from ovirt_placement.rules.ha import rank_hosts
from ovirt_placement.rules.load import score_by_cpu, score_by_memory
from tools.engine_conformance import definitions, product, simulator
from tools.engine_conformance.our_switches import (
    EMPTY_HOST_GROUP,
    LEFT_BEHIND,
    NO_RULES,
    NOT_ITSELF,
    NOTHING_TO_PROTECT,
    OUR_SWITCHES,
    PENDING_AS_IT_IS,
    PENDING_HA,
    PENDING_TWICE,
    PERCENT_OF_CPUS,
    UNIFIED_GROUPS,
    conflicts_alike,
    exact,
    refined,
)
from tools.engine_conformance.reading import (
    Agreement,
    as_closure,
    as_conflicts,
    as_hosts,
    as_placed,
    as_sets,
    as_tiers,
    first_move,
    one_of_the_runs,
    same,
    same_order,
)
from tools.engine_conformance.requests import (
    balancing,
    closing,
    cycling,
    enforcing,
    externally,
    moving,
    of_cluster,
    overloading,
    placing_alongside_the_engine,
    placing_one,
    placing_with,
    selecting,
    validating,
)
from tools.engine_conformance.switches import (
    CRASH_FOR_ALL,
    CRASH_OF_A_HOST_ASIDE,
    HOSTED_ENGINE_STAYS,
    LABEL_WITHOUT_MEMBERS,
    MEMBERS_ELSEWHERE,
    NO_SOFT_ENFORCEMENT,
    ONLY_WHAT_IS_UP,
    OVERLOADED_SINCE,
    PHYSICAL_MEMORY_AS_TOLD,
    SWITCHES,
    UNKNOWN_USE_OF_A_HOST,
    UNKNOWN_USE_OF_A_VM,
)
from tools.engine_conformance.unit import FEWER, Copy, Unit, filter_unit, weight_unit

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


def _ours(name: str, kind: str, engine_class: str, copy: Copy, agree: Agreement) -> Unit:
    return Unit(name, kind, placing_one, {"product": copy}, agree, request={"unit": engine_class})


OURS = (
    _ours(
        "AffinityFilter",
        "filter",
        "VmAffinityFilterPolicyUnit",
        Copy(
            product.accepted(vm_filter.filter_hosts),
            (UNIFIED_GROUPS, LEFT_BEHIND, CRASH_OF_A_HOST_ASIDE),
            beforehand=(MEMBERS_ELSEWHERE,),
        ),
        same(as_hosts),
    ),
    _ours(
        "HostAffinityFilter",
        "filter",
        "VmToHostAffinityFilterPolicyUnit",
        Copy(
            product.accepted(host_filter.filter_hosts), (EMPTY_HOST_GROUP,), beforehand=(MEMBERS_ELSEWHERE,)
        ),
        same(as_hosts),
    ),
    _ours(
        "SoftAffinityWeight",
        "weight",
        "VmAffinityWeightPolicyUnit",
        Copy(product.ranks(vm_weight.rank_hosts), (PENDING_AS_IT_IS,), beforehand=(MEMBERS_ELSEWHERE,)),
        refined,
    ),
    _ours(
        "HostAffinityWeight",
        "weight",
        "VmToHostAffinityWeightPolicyUnit",
        Copy(product.ranks(host_weight.rank_hosts), beforehand=(MEMBERS_ELSEWHERE,)),
        same(as_tiers),
    ),
    _ours(
        "HaReservationWeight",
        "weight",
        "HaReservationWeightPolicyUnit",
        Copy(product.ranks(rank_hosts), (NOT_ITSELF, PENDING_HA)),
        same(as_tiers),
    ),
    Unit(
        "ha-check-exact",
        "ha_check",
        of_cluster,
        {
            "product": Copy(
                product.ha_check, (NOTHING_TO_PROTECT,), beforehand=(PENDING_TWICE, PERCENT_OF_CPUS, NO_RULES)
            )
        },
        exact,
        FEWER,
    ),
    Unit(
        "conflicts-alike",
        "conflicts",
        of_cluster,
        {"product": Copy(product.conflicts, beforehand=(MEMBERS_ELSEWHERE,))},
        conflicts_alike,
        FEWER,
    ),
)


CLUSTERS = (
    Unit("ha-check", "ha_check", of_cluster, {"simulator": Copy(simulator.ha_check)}, number=FEWER),
    Unit(
        "conflicts",
        "conflicts",
        of_cluster,
        {"simulator": Copy(simulator.conflicts)},
        same(as_conflicts),
        number=FEWER,
    ),
    Unit(
        "unified",
        "unified",
        of_cluster,
        {"product": Copy(product.unified, (MEMBERS_ELSEWHERE,))},
        same(as_sets),
        number=FEWER,
    ),
    Unit(
        "closure", "closure", closing, {"simulator": Copy(simulator.closure)}, same(as_closure), number=FEWER
    ),
    Unit(
        "validator",
        "validate",
        validating,
        {"simulator": Copy(simulator.validate, (LABEL_WITHOUT_MEMBERS,))},
        number=FEWER,
    ),
    Unit("broken", "broken", of_cluster, {"simulator": Copy(simulator.broken)}, number=FEWER),
    Unit(
        "enforcement",
        "enforcement",
        enforcing,
        {
            "product": Copy(
                product.enforcement,
                (PHYSICAL_MEMORY_AS_TOLD, ONLY_WHAT_IS_UP, CRASH_FOR_ALL),
                beforehand=(MEMBERS_ELSEWHERE,),
            ),
            "simulator": Copy(simulator.enforcement, (NO_SOFT_ENFORCEMENT, CRASH_FOR_ALL)),
        },
        same_order,
        number=FEWER,
    ),
    Unit(
        "enforcement-cycle",
        "manager",
        cycling,
        {"simulator": Copy(simulator.enforcement_cycle, (NO_SOFT_ENFORCEMENT, CRASH_FOR_ALL))},
        one_of_the_runs,
        number=FEWER,
    ),
    Unit(
        "even-distribution",
        "balance",
        balancing,
        {
            "product": Copy(
                product.even_distribution_move,
                (UNKNOWN_USE_OF_A_HOST, UNKNOWN_USE_OF_A_VM, ONLY_WHAT_IS_UP, HOSTED_ENGINE_STAYS),
            )
        },
        first_move,
        number=FEWER,
        request={"unit": "EvenDistributionBalancePolicyUnit"},
    ),
    Unit(
        "schedule",
        "schedule",
        moving,
        {"simulator": Copy(simulator.schedule, (CRASH_FOR_ALL,))},
        same(as_placed),
        number=FEWER,
    ),
    Unit(
        "external-units",
        "external",
        externally,
        {"simulator": Copy(simulator.schedule_externally, (CRASH_FOR_ALL,))},
        number=FEWER,
    ),
)


UNCOPIED = (
    filter_unit(
        "hosted-engine-hosts",
        "HostedEngineHAClusterFilterPolicyUnit",
        placing_alongside_the_engine,
        definition=Copy(definitions.hosted_engine_hosts),
    ),
    filter_unit(
        "hosted-engine-spares",
        "HostedEngineMemoryReservationFilterPolicyUnit",
        placing_alongside_the_engine,
        definition=Copy(definitions.hosted_engine_spares),
    ),
    weight_unit(
        "hosted-engine-weight",
        "HostedEngineHAClusterWeightPolicyUnit",
        placing_alongside_the_engine,
        definition=Copy(definitions.hosted_engine_weight),
    ),
    Unit(
        "basic-selector",
        "selector",
        selecting,
        {"definition": Copy(definitions.least_weights)},
        definitions.one_of_these,
        request={"unit": "BasicWeightSelectorPolicyUnit"},
    ),
)


UNITS = {unit.name: unit for unit in (*FILTERS, *WEIGHTS, *SELECTORS, *CLUSTERS, *OURS, *UNCOPIED)}
ALL_SWITCHES = SWITCHES | OUR_SWITCHES
