"""The engine's units that we have no copy of, and what is known of them."""

from __future__ import annotations

from tools.engine_conformance import definitions
from tools.engine_conformance.requests import placing_alongside_the_engine, selecting
from tools.engine_conformance.unit import Copy, Unit, filter_unit, weight_unit

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
