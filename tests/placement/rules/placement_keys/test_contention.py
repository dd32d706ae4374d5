"""Which contention ratio counts on a host: its own, else the policy's, else the cluster's overcommit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.rules.placement_keys.capacity import contention_of_hosts
from ovirt_placement.rules.placement_keys.mistakes import find_mistakes
from ovirt_placement.rules.placement_keys.placing import filter_hosts
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, KeySettings
from ovirt_placement.rules.verdict import Request
from tests.builders import cluster, host, vm
from tests.placement.rules.placement_keys.parts import keyed, node_key

HOSTS = ("h1", "h2")
POLICY = KeySettings(memory_ratio=Fraction(3), cpu_ratio=Fraction(5))


def world(*keys: PlacementKey, memory_percent: int = 100, cpu_percent: int = 200) -> Snapshot:
    """Two hosts of 10000 MiB, on each of which 9000 are handed out, and a VM of 3000."""
    return keyed(
        cluster(memory_overcommit_percent=memory_percent, cpu_overcommit_percent=cpu_percent),
        *(host(name, memory_mb=10_000, memory_free_mb=50_000) for name in HOSTS),
        *(vm(f"on-{name}", name, memory_mb=9000) for name in HOSTS),
        vm("new", memory_mb=3000),
        keys=keys,
    )


def ratios(snapshot: Snapshot, settings: KeySettings = DEFAULTS) -> list[tuple[float, str, float, str]]:
    return [
        (float(one.memory), one.memory_source, float(one.cpu), one.cpu_source)
        for one in contention_of_hosts(snapshot, settings)
    ]


def test_the_host_comes_before_the_policy_and_the_policy_before_the_cluster() -> None:
    own = (node_key("h1", "#RAM_RATIO", 1.5), node_key("h2", "#CPU_RATIO", "4"))
    assert ratios(world()) == [(1, "cluster", 2, "cluster")] * 2
    assert ratios(world(), POLICY) == [(3, "policy", 5, "policy")] * 2
    assert ratios(world(*own)) == [(1.5, "host", 2, "cluster"), (1, "cluster", 4, "host")]
    assert ratios(world(*own), POLICY) == [(1.5, "host", 5, "policy"), (3, "policy", 4, "host")]


def test_room_is_where_the_host_hands_out_more() -> None:
    def accepted(*keys: PlacementKey, settings: KeySettings = DEFAULTS) -> list[str]:
        verdicts = filter_hosts(world(*keys), Request(("new",), HOSTS), settings)
        return [verdict.host for verdict in verdicts if verdict.accepted]

    assert accepted() == []
    assert accepted(node_key("h2", "#RAM_RATIO", 1.5)) == ["h2"]
    # 9000 and 3000 and the overhead: exactly enough is not enough.
    assert accepted(node_key("h2", "#RAM_RATIO", 1.3024)) == []
    assert accepted(node_key("h2", "#RAM_RATIO", 1.3025)) == ["h2"]
    assert accepted(node_key("h2", "#RAM_RATIO", 0.5), settings=POLICY) == ["h1"]


@pytest.mark.parametrize(
    ("value", "key_class"), [(0, "system"), (-1, "system"), (1000, "system"), ("x", "system"), (2, "be")]
)
def test_what_cannot_be_is_ignored_and_reported(value: float | str, key_class: str) -> None:
    wrong = node_key("h1", "#RAM_RATIO", value, key_class=key_class)
    assert ratios(world(wrong)) == [(1, "cluster", 2, "cluster")] * 2
    assert len(find_mistakes(world(wrong))) == 1


def test_no_other_host_need_have_one() -> None:
    assert find_mistakes(world(node_key("h1", "#RAM_RATIO", 1.5))) == ()
