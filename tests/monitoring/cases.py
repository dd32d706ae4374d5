"""For each alert: series of metrics, a minute when it is quiet, one when it fires, and what it says."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ENFORCER = "ovirt_placement_enforcer"
PROXY = "ovirt_scheduler_proxy"
_BUCKET = f'{PROXY}_call_duration_seconds_bucket{{instance="p", method="runFilters"'


@dataclass(frozen=True)
class Case:
    """Series have one value a minute, written as promtool does."""

    series: Mapping[str, str]
    #: Since the beginning: one when it is quiet, and one when it fires.
    minutes: tuple[int, int]
    labels: Mapping[str, str]
    summary: str
    #: Whether the alert is quiet with no other series than these.
    never: Mapping[str, str] = field(default_factory=dict)


def down(job: str, what: str, minutes: int) -> Case:
    return Case(
        {f'up{{job="{job}", instance="m"}}': "1x5 0x30"},
        minutes=(5 + minutes, 7 + minutes),
        labels={"job": job, "instance": "m"},
        summary=f"The {what} on m does not answer.",
        never={f'up{{job="{job}", instance="m"}}': "1x60", 'up{job="another"}': "0x60"},
    )


CASES = {
    "OvirtPlacementProxyDown": down("ovirt-scheduler-proxy", "scheduler proxy", 2),
    "OvirtPlacementInventoryDown": down("ovirt-placement-inventory", "inventory service", 2),
    "OvirtPlacementEnforcerDown": down("ovirt-enforcer", "enforcer", 5),
    "OvirtPlacementSnapshotStale": Case(
        {'ovirt_placement_inventory_snapshot_timestamp_seconds{instance="i"}': "0+60x10 600x20"},
        minutes=(12, 15),
        labels={"instance": "i"},
        summary="What is published of the engine is 5m 0s old.",
        never={'ovirt_placement_inventory_snapshot_timestamp_seconds{instance="i"}': "0+60x60"},
    ),
    "OvirtPlacementHaNotSafe": Case(
        {f'{ENFORCER}_ha_safe{{cluster="blue"}}': "1x5 0x30", f'{ENFORCER}_ha_safe{{cluster="red"}}': "1x40"},
        minutes=(10, 12),
        labels={"cluster": "blue"},
        summary="Cluster blue would not survive the failure of a host.",
        never={f'{ENFORCER}_ha_safe{{cluster="blue"}}': "NaN " * 60},
    ),
    "OvirtPlacementUnitsDisabled": Case(
        {'ovirt_placement_inventory_disabled_units{cluster="blue"}': "0x5 13x30"},
        minutes=(7, 10),
        labels={"cluster": "blue"},
        summary="The engine has disabled 13 policy units of cluster blue.",
        never={'ovirt_placement_inventory_disabled_units{cluster="blue"}': "0x10 13x1 0x60"},
    ),
    "OvirtPlacementNoLeader": Case(
        {f'{ENFORCER}_leader{{instance="a"}}': "1x5 0x30", f'{ENFORCER}_leader{{instance="b"}}': "0x40"},
        minutes=(10, 12),
        labels={},
        summary="No enforcer leads.",
        never={
            f'{ENFORCER}_leader{{instance="a"}}': "1x30 0x30",
            f'{ENFORCER}_leader{{instance="b"}}': "0x30 1x30",
        },
    ),
    "OvirtPlacementUnitCutOff": Case(
        {f'{PROXY}_open_breakers{{instance="p", kind="filter", unit="AffinityFilter"}}': "0x5 1x30"},
        minutes=(6, 8),
        labels={"instance": "p", "kind": "filter", "unit": "AffinityFilter"},
        summary="The proxy on p has cut off AffinityFilter.",
        never={f'{PROXY}_open_breakers{{instance="p", kind="filter", unit="AffinityFilter"}}': "0x60"},
    ),
    "OvirtPlacementUnitFailing": Case(
        {f'{PROXY}_unit_failures_total{{instance="p", unit="AffinityFilter", cause="raised"}}': "0x5 1+1x40"},
        minutes=(14, 18),
        labels={"instance": "p", "unit": "AffinityFilter"},
        summary="Unit AffinityFilter of the proxy on p fails.",
        never={f'{PROXY}_unit_failures_total{{instance="p", unit="AffinityFilter", cause="raised"}}': "7x60"},
    ),
    "OvirtPlacementCallsSlow": Case(
        {
            f'{_BUCKET}, le="1"}}': "0x60",
            f'{_BUCKET}, le="2.5"}}': "0+10x60",
            f'{_BUCKET}, le="+Inf"}}': "0+10x60",
        },
        minutes=(9, 15),
        labels={"instance": "p"},
        summary="One call in a hundred to the proxy on p takes 2.485s.",
        never={f'{_BUCKET}, le="1"}}': "0+10x60", f'{_BUCKET}, le="+Inf"}}': "0+10x60"},
    ),
    "OvirtPlacementEnforcerCycleFailing": Case(
        {
            f'{ENFORCER}_cycles_total{{instance="e", result="failed"}}': "0x30 0+1x40",
            f'{ENFORCER}_cycles_total{{instance="e", result="ok"}}': "0+1x30 30x40",
        },
        minutes=(40, 55),
        labels={"instance": "e", "result": "failed"},
        summary="Every cycle of the enforcer on e fails.",
        never={
            f'{ENFORCER}_cycles_total{{instance="e", result="failed"}}': "0+1x60",
            f'{ENFORCER}_cycles_total{{instance="e", result="ok"}}': "0+1x60",
        },
    ),
    "OvirtPlacementMigrationsFailing": Case(
        {
            f'{ENFORCER}_migrations_total{{result="failed"}}': "0x5 1 1 1 1x30",
            f'{ENFORCER}_migrations_total{{result="refused"}}': "0x5 0 1 2 2x30",
            f'{ENFORCER}_migrations_total{{result="done"}}': "0+1x40",
        },
        minutes=(7, 12),
        labels={},
        summary="3 migrations failed or were refused within an hour.",
        never={f'{ENFORCER}_migrations_total{{result="{one}"}}': "0+1x60" for one in ("done", "never_asked")},
    ),
    "OvirtPlacementMigrationBreakerOpen": Case(
        {
            f'{ENFORCER}_gate_closures_total{{gate="breaker"}}': "0x5 1+1x30",
            f'{ENFORCER}_gate_closures_total{{gate="cooldown"}}': "0+1x40",
        },
        minutes=(6, 9),
        labels={},
        summary="The enforcer migrates nothing in a cluster, since too many of its migrations failed.",
        never={f'{ENFORCER}_gate_closures_total{{gate="cooldown"}}': "0+1x60"},
    ),
    "OvirtPlacementHardRuleViolated": Case(
        {
            f'{ENFORCER}_violations{{cluster="blue", family="vm_affinity", hardness="hard"}}': "0x5 2x60",
            f'{ENFORCER}_violations{{cluster="blue", family="vm_affinity", hardness="soft"}}': "3x70",
        },
        minutes=(34, 37),
        labels={"cluster": "blue", "family": "vm_affinity", "hardness": "hard"},
        summary="2 hard rules (vm_affinity) are violated in cluster blue.",
        never={f'{ENFORCER}_violations{{cluster="blue", family="vm_affinity", hardness="soft"}}': "3x70"},
    ),
    "OvirtPlacementIntentsStuck": Case(
        {f"{ENFORCER}_pending_intents": "0x5 1x200"},
        minutes=(120, 133),
        labels={},
        summary="For two hours there have always been migrations whose end is not known.",
        never={f"{ENFORCER}_pending_intents": "1x50 0 1x50 0 1x50"},
    ),
    "OvirtPlacementNotificationsFailing": Case(
        {
            f'{ENFORCER}_notifications_total{{channel="webhook", result="failed"}}': "0x5 1x30",
            f'{ENFORCER}_notifications_total{{channel="webhook", result="sent"}}': "0+1x40",
        },
        minutes=(10, 13),
        labels={"channel": "webhook"},
        summary="Notifications by webhook do not arrive.",
        never={f'{ENFORCER}_notifications_total{{channel="webhook", result="sent"}}': "0+1x60"},
    ),
    "OvirtPlacementHaUnknown": Case(
        {f'{ENFORCER}_ha_safe{{cluster="blue"}}': "1x5" + " NaN" * 60},
        minutes=(34, 38),
        labels={"cluster": "blue"},
        summary="It is not known whether cluster blue would survive the failure of a host.",
        never={f'{ENFORCER}_ha_safe{{cluster="blue"}}': "1x30 0x30"},
    ),
    "OvirtPlacementNotEnforcing": Case(
        {
            f'{ENFORCER}_mode{{instance="e", mode="enforce"}}': "0x1500",
            f'{ENFORCER}_leader{{instance="e"}}': "1x1500",
        },
        minutes=(1439, 1445),
        labels={"instance": "e", "mode": "enforce"},
        summary="The enforcer on e leads and is not in enforce mode.",
        never={
            f'{ENFORCER}_mode{{instance="e", mode="enforce"}}': "0x1500",
            f'{ENFORCER}_leader{{instance="e"}}': "0x1500",
        },
    ),
}
