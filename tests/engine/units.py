"""What is compared: each of the engine's units, the questions for it, and our copies with their switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.engine import definitions, product, simulator
from tests.engine.our_switches import (
    EMPTY_HOST_GROUP,
    LEFT_BEHIND,
    NOTHING_TO_PROTECT,
    NOT_ITSELF,
    NO_RULES,
    PENDING_AS_IT_IS,
    PENDING_HA,
    PENDING_TWICE,
    PERCENT_OF_CPUS,
    UNIFIED_GROUPS,
    conflicts_alike,
    exact,
    refined,
)
from tests.engine.question import Question
from tests.engine.reading import (
    Agreement,
    as_closure,
    as_conflicts,
    as_hosts,
    as_is,
    as_placed,
    as_sets,
    as_tiers,
    first_move,
    one_of_the_runs,
    same,
    same_order,
)
from tests.engine.requests import (
    Asking,
    balancing,
    closing,
    cycling,
    enforcing,
    externally,
    moving,
    of_cluster,
    overloading,
    placing,
    placing_beside_the_engine,
    placing_one,
    placing_with,
    questions,
    selecting,
    validating,
)
from tests.engine.switches import (
    CRASH_OF_A_HOST_ASIDE,
    CRASH_FOR_ALL,
    HOSTED_ENGINE_STAYS,
    LABEL_WITHOUT_MEMBERS,
    MEMBERS_ELSEWHERE,
    NO_SOFT_ENFORCEMENT,
    ONLY_WHAT_IS_UP,
    PHYSICAL_MEMORY_AS_TOLD,
    UNKNOWN_USE_OF_A_HOST,
    UNKNOWN_USE_OF_A_VM,
    Switch,
)


@dataclass(frozen=True)
class Copy:
    """One of our answers to what a unit of the engine answers."""

    answer: Callable[[Question], Any]
    switches: tuple[Switch, ...] = ()
    #: Switches of which ours is asked without the quirk, too: what there is of it can be compared in no other way.
    beforehand: tuple[Switch, ...] = ()


@dataclass(frozen=True)
class Unit:
    name: str
    kind: str
    asking: Asking
    copies: Mapping[str, Copy]
    agree: Agreement = same(as_is)
    #: How many questions make a whole run.
    number: int = 20_000
    #: What is the same in all requests.
    request: Mapping[str, Any] = field(default_factory=dict)

    def questions(self, seed: int, number: int) -> Iterator[Question]:
        return questions(self.kind, self.asking, seed, number, **self.request)


def _filter(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "filter", asking, copies, same(as_hosts), request={"unit": engine_class})


def _weight(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "weight", asking, copies, same(as_tiers), request={"unit": engine_class})


_RATIO = placing_with(VCpuToPhysicalCpuRatio=lambda random: random.choice((None, None, None, "0.5", "1", "2")))
_SCALE_DOWN = placing_with(ScaleDown=lambda random: random.choice((None, None, "1", "3", "10", "100")))

FILTERS = (
    _filter(
        "memory",
        "MemoryPolicyUnit",
        product=Copy(product.accepted("built_in.memory"), (PHYSICAL_MEMORY_AS_TOLD,)),
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
        {"product": Copy(product.best_by_rank), "simulator": Copy(simulator.best_by_rank)},
        request={"unit": "RankSelectorPolicyUnit"},
    ),
)

_FEWER = 5_000

CLUSTERS = (
    Unit("ha-check", "ha_check", of_cluster, {"simulator": Copy(simulator.ha_check)}, number=_FEWER),
    Unit(
        "conflicts",
        "conflicts",
        of_cluster,
        {"simulator": Copy(simulator.conflicts)},
        same(as_conflicts),
        number=_FEWER,
    ),
    Unit("unified", "unified", of_cluster, {"product": Copy(product.unified, (MEMBERS_ELSEWHERE,))}, same(as_sets), number=_FEWER),
    Unit("closure", "closure", closing, {"simulator": Copy(simulator.closure)}, same(as_closure), number=_FEWER),
    Unit(
        "validator",
        "validate",
        validating,
        {"simulator": Copy(simulator.validate, (LABEL_WITHOUT_MEMBERS,))},
        number=_FEWER,
    ),
    Unit("broken", "broken", of_cluster, {"simulator": Copy(simulator.broken)}, number=_FEWER),
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
        number=_FEWER,
    ),
    Unit(
        "enforcement-cycle",
        "manager",
        cycling,
        {"simulator": Copy(simulator.enforcement_cycle, (NO_SOFT_ENFORCEMENT, CRASH_FOR_ALL))},
        one_of_the_runs,
        number=_FEWER,
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
        number=_FEWER,
        request={"unit": "EvenDistributionBalancePolicyUnit"},
    ),
    Unit(
        "schedule",
        "schedule",
        moving,
        {"simulator": Copy(simulator.schedule, (CRASH_FOR_ALL,))},
        same(as_placed),
        number=_FEWER,
    ),
    Unit(
        "external-units",
        "external",
        externally,
        {"simulator": Copy(simulator.schedule_externally, (CRASH_FOR_ALL,))},
        number=_FEWER,
    ),
)

#: Units that we have no copy of: what is known of them.
UNCOPIED = (
    _filter("cpu-overloaded", "CpuOverloadPolicyUnit", overloading, definition=Copy(definitions.cpu_overloaded)),
    _filter(
        "hosted-engine-hosts",
        "HostedEngineHAClusterFilterPolicyUnit",
        placing_beside_the_engine,
        definition=Copy(definitions.hosted_engine_hosts),
    ),
    _filter(
        "hosted-engine-spares",
        "HostedEngineMemoryReservationFilterPolicyUnit",
        placing_beside_the_engine,
        definition=Copy(definitions.hosted_engine_spares),
    ),
    _weight(
        "hosted-engine-weight",
        "HostedEngineHAClusterWeightPolicyUnit",
        placing_beside_the_engine,
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

def _ours(name: str, kind: str, engine_class: str, copy: Copy, agree: Agreement) -> Unit:
    return Unit(name, kind, placing_one, {"product": copy}, agree, request={"unit": engine_class})


#: Our own units, which stand beside the engine's or in their place.
OURS = (
    _ours(
        "AffinityFilter",
        "filter",
        "VmAffinityFilterPolicyUnit",
        Copy(
            product.accepted("affinity.vm_filter"),
            (UNIFIED_GROUPS, LEFT_BEHIND, CRASH_OF_A_HOST_ASIDE),
            beforehand=(MEMBERS_ELSEWHERE,),
        ),
        same(as_hosts),
    ),
    _ours(
        "HostAffinityFilter",
        "filter",
        "VmToHostAffinityFilterPolicyUnit",
        Copy(product.accepted("affinity.host_filter"), (EMPTY_HOST_GROUP,), beforehand=(MEMBERS_ELSEWHERE,)),
        same(as_hosts),
    ),
    _ours(
        "SoftAffinityWeight",
        "weight",
        "VmAffinityWeightPolicyUnit",
        Copy(product.ranks("affinity.vm_weight"), (PENDING_AS_IT_IS,), beforehand=(MEMBERS_ELSEWHERE,)),
        refined,
    ),
    _ours(
        "HostAffinityWeight",
        "weight",
        "VmToHostAffinityWeightPolicyUnit",
        Copy(product.ranks("affinity.host_weight"), beforehand=(MEMBERS_ELSEWHERE,)),
        same(as_tiers),
    ),
    _ours(
        "HaReservationWeight",
        "weight",
        "HaReservationWeightPolicyUnit",
        Copy(product.ranks("ha.weight"), (NOT_ITSELF, PENDING_HA)),
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
        _FEWER,
    ),
    Unit(
        "conflicts-alike",
        "conflicts",
        of_cluster,
        {"product": Copy(product.conflicts, beforehand=(MEMBERS_ELSEWHERE,))},
        conflicts_alike,
        _FEWER,
    ),
)

UNITS = {unit.name: unit for unit in (*FILTERS, *WEIGHTS, *SELECTORS, *CLUSTERS, *UNCOPIED, *OURS)}
