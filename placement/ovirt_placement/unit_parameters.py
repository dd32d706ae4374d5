"""The parameters that the engine offers for our policy units: `key=regex;key2=regex2`, as it checks them.

Data alone: what loads a unit needs no rule.
"""

from typing import Final

_WORD: Final = "[A-Za-z0-9_.-]+"
_WORDS: Final = f"{_WORD}(,{_WORD})*"
_RATIO: Final = r"([1-9][0-9]{0,2}(\.[0-9]{1,4})?|0\.0{0,3}[1-9][0-9]{0,3})"
_SCORE: Final = r"-?[0-9]{1,4}(\.[0-9]{1,4})?"
_MEASURE: Final = "ha_measure=(resources|vms)"
_FAILURES: Final = "ha_failures=[1-9]"

_KEYS: Final = ";".join(
    (
        f"placement_initial={_SCORE}",
        f"placement_final={_SCORE}",
        "placement_steps=(100|[1-9][0-9]?)",
        "placement_overhead=[0-9]{1,7}",
        f"placement_memory_ratio={_RATIO}",
        f"placement_cpu_ratio={_RATIO}",
        "placement_reserved_from_vms=(true|false)",
        "placement_load=(cpu|average)",
    )
)
_ADMISSION: Final = ";".join(
    (
        _FAILURES,
        f"ha_admission_domain_tags={_WORDS}",
        f"ha_admission_domains={_WORD}:{_WORDS}(/{_WORD}:{_WORDS})*",
    )
)

#: By the unit's name.
PARAMETERS: Final[dict[str, str]] = {
    "AffinityFilter": "affinity_missing_unit=(report|reject)",
    "PlacementKeyFilter": _KEYS,
    "PlacementKeyWeight": f"{_KEYS};placement_tie=(random|engine)",
    "HaReservationWeight": ";".join(
        (_MEASURE, "ha_weight_scale_down=(100|[1-9][0-9]?)", _FAILURES, f"ha_failover_hosts={_WORDS}")
    ),
    "HaReservationBalance": ";".join(
        (
            _MEASURE,
            "ha_balance_over_utilization=[1-9][0-9]{0,3}",
            "ha_balance_high_utilization=[5-9][0-9]",
            "ha_balance_cpu_over_commit_duration_minutes=[1-9][0-9]*",
            "ha_balance_max_free_memory_for_over_utilized=[1-9][0-9]*",
            "ha_balance_min_free_memory_for_under_utilized=[1-9][0-9]*",
            "ha_balance_vcpu_to_physical_cpu_ratio=[1-9][0-9]*",
        )
    ),
    "HaAdmissionFilter": _ADMISSION,
    "HaAdmissionWeight": _ADMISSION,
}
