"""What the units answer about a snapshot: who is refused and why, who comes first, and who ties."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import DataCenter
from ovirt_placement.rules.built_in.filters import HOST_NOT_UP, MEMORY_HANDED_OUT
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind
from ovirt_placement.rules.placement_keys.units import (
    KEYS_REFUSE,
    KEYS_ROUND,
    MEMORY_IN_USE,
    filter_hosts,
    rank_hosts,
)
from tests.builders import cluster, host, vm
from tests.placement.rules.placement_keys.nodes import TWO_HOSTS, accepted, asked, key, keyed, node_key, ranks


@pytest.mark.parametrize(
    ("fields", "kind", "number"),
    [
        ({"status": "maintenance"}, HOST_NOT_UP, None),
        ({"memory_mb": 2048}, MEMORY_HANDED_OUT, 2048),
        ({"memory_free_mb": 2048}, MEMORY_IN_USE, 2048),
        ({"free_mb": 1024}, MEMORY_IN_USE, 1024),
    ],
)
def test_host_without_room_is_refused_by_what_it_lacks(
    fields: dict[str, Any], kind: ReasonKind, number: int
) -> None:
    (verdict,) = filter_hosts(keyed(host("h1", **fields), vm("new", memory_mb=1024)), asked("h1"))
    assert verdict.reasons == (Reason(kind, host="h1", number=number),)


def test_filter_keeps_worse_rounds_and_refuses_what_is_below_the_last() -> None:
    state = keyed(
        *(host(f"h{number}") for number in range(1, 4)),
        vm("new"),
        keys=(
            key("GEN", 1.0, 90.0),
            key("PRIV", 1.0, -100.0),
            *(node_key(f"h{number}", "GEN", gen) for number, gen in ((1, 1.0), (2, 0.5), (3, 1.0))),
            *(node_key(f"h{number}", "PRIV", private) for number, private in ((1, 0.0), (2, 0.0), (3, 1.0))),
        ),
    )
    assert accepted(state, "h1", "h2", "h3") == ["h1", "h2"]
    assert ranks(state, "h3", "h2", "h1") == {"h1": 0, "h2": 1, "h3": 2}
    assert filter_hosts(state, asked("h3"))[0].reasons == (Reason(KEYS_REFUSE, host="h3", number=-10),)
    assert rank_hosts(state, asked("h2"))[0].reasons == (Reason(KEYS_ROUND, host="h2", number=5),)
    unexplained = rank_hosts(state, replace(asked("h3", "h2", "h1"), explained=False))
    assert [(one.host, one.rank, one.reasons) for one in unexplained] == [
        ("h3", 2, ()),
        ("h2", 1, ()),
        ("h1", 0, ()),
    ]


def test_ties_stand_in_the_order_given_or_stay_ties() -> None:
    state = keyed(*TWO_HOSTS, host("h3", status="maintenance"), vm("new"), keys=(key("K"),))
    hosts = ("h1", "h2", "h3")
    assert ranks(state, *hosts) == {"h1": 0, "h2": 0, "h3": 1}
    assert ranks(state, *hosts, drawn=("h3", "h2", "h1")) == {"h2": 0, "h1": 1, "h3": 2}


def test_failover_host_comes_after_all_acceptable_and_before_refused_ones() -> None:
    state = keyed(
        host("h1", failover=True),
        host("h2"),
        host("h3", status="maintenance"),
        vm("new"),
        keys=(key("GEN"), node_key("h1", "GEN", 1.0), node_key("h2", "GEN", 0.0)),
    )
    assert ranks(state, "h1", "h2", "h3") == {"h2": 0, "h1": 1, "h3": 2}


def test_local_storage_takes_what_the_engine_offers() -> None:
    state = keyed(
        cluster(data_center="local"),
        host("h1", memory_mb=1),
        vm("new"),
        keys=(key("K", weight=-200.0), node_key("h1", "K", 1.0)),
        data_centers=(DataCenter(id="local", name="local", local_storage=True),),
    )
    assert accepted(state, "h1") == ["h1"]
    assert ranks(state, "h1") == {"h1": 0}


def test_unknown_vm_is_free_and_unknown_host_is_refused() -> None:
    assert accepted(keyed(*TWO_HOSTS)) == ["h1", "h2"]
    assert accepted(keyed(*TWO_HOSTS, vm("new")), "h1", "h9") == ["h1"]


def test_two_vms_are_placed_where_both_may_be() -> None:
    state = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("other"),
        keys=(
            key("K", weight=50.0),
            key("K", weight=-200.0, resource="other"),
            node_key("h1", "K", 1.0),
            node_key("h2", "K", 0.0),
        ),
    )
    verdicts = filter_hosts(state, asked(vms="new other"))
    assert [verdict.accepted for verdict in verdicts] == [False, True]
    assert [weight.rank for weight in rank_hosts(state, asked(vms="new other"))] == [1, 0]
