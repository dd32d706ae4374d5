"""What the engine finds out about whole clusters, and our copies of that."""

from __future__ import annotations

from tools.engine_conformance import product, simulator
from tools.engine_conformance.reading import (
    as_closure,
    as_conflicts,
    as_placed,
    as_sets,
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
    validating,
)
from tools.engine_conformance.switches import (
    CRASH_FOR_ALL,
    HOSTED_ENGINE_STAYS,
    LABEL_WITHOUT_MEMBERS,
    MEMBERS_ELSEWHERE,
    NO_SOFT_ENFORCEMENT,
    ONLY_WHAT_IS_UP,
    PHYSICAL_MEMORY_AS_TOLD,
    UNKNOWN_USE_OF_A_HOST,
    UNKNOWN_USE_OF_A_VM,
)
from tools.engine_conformance.unit import FEWER, Copy, Unit

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
