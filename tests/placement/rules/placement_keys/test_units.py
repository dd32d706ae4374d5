"""What the units answer about a state: who is refused and why, who comes first by which round, who ties."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import DataCenter
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind
from ovirt_placement.rules.engine_filters import HOST_NOT_UP, MEMORY_HANDED_OUT
from ovirt_placement.rules.placement_keys.judgement import thresholds
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings, settings_of
from ovirt_placement.rules.placement_keys.units import (
    KEYS_REFUSE,
    KEYS_ROUND,
    MEMORY_IN_USE,
    decide_vm,
    filter_hosts,
    rank_hosts,
)
from tests.builders import TOGETHER, cluster, group, host, key, node_key, vm
from tests.placement.rules.placement_keys.nodes import TWO_HOSTS, accepted, asked, keyed, ranks


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
        *(host(f"h{number}") for number in range(1, 4)), vm("new"),
        keys=(
            key("GEN", 1.0, 90.0), key("PRIV", 1.0, -100.0),
            *(node_key(f"h{number}", "GEN", gen) for number, gen in ((1, 1.0), (2, 0.5), (3, 1.0))),
            *(node_key(f"h{number}", "PRIV", private) for number, private in ((1, 0.0), (2, 0.0), (3, 1.0))),
        ),
    )  # fmt: skip
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


def test_local_storage_takes_what_the_engine_offers() -> None:
    state = keyed(
        cluster(data_center="local"), host("h1", memory_mb=1), vm("new"),
        keys=(key("K", weight=-200.0), node_key("h1", "K", 1.0)),
        data_centers=(DataCenter(id="local", name="local", local_storage=True),),
    )  # fmt: skip
    assert (accepted(state, "h1"), ranks(state, "h1")) == (["h1"], {"h1": 0})


def test_unknown_vm_is_free_and_unknown_host_is_refused() -> None:
    assert accepted(keyed(*TWO_HOSTS)) == ["h1", "h2"]
    assert accepted(keyed(*TWO_HOSTS, vm("new")), "h1", "h9") == ["h1"]


def test_two_vms_are_placed_where_both_may_be() -> None:
    state = keyed(
        *TWO_HOSTS, vm("new"), vm("other"),
        keys=(
            key("K", weight=50.0), key("K", weight=-200.0, resource="other"), node_key("h1", "K", 1.0),
            node_key("h2", "K", 0.0),
        ),
    )  # fmt: skip
    verdicts = filter_hosts(state, asked(vms="new other"))
    assert [verdict.accepted for verdict in verdicts] == [False, True]
    assert [weight.rank for weight in rank_hosts(state, asked(vms="new other"))] == [1, 0]


def test_defaults_fall_from_80_to_minus_10_in_tens() -> None:
    assert thresholds(KeySettings()) == (80, 70, 60, 50, 40, 30, 20, 10, 0, -10)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"steps": 0}, "steps: 0 is not from 1 to 100"),
        ({"steps": 10**20}, f"steps: {10**20} is not from 1 to 100"),
        ({"initial": Fraction(-11)}, "initial: -11 is below final, -10"),
        ({"memory_ratio": Fraction(0)}, "memory_ratio: 0 is not greater than 0"),
        ({"cpu_ratio": Fraction(-1)}, "cpu_ratio: -1 is not greater than 0"),
        ({"overhead_mb": -1}, "overhead_mb: -1 is less than 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Fraction], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        KeySettings(**wrong)


def test_settings_that_a_policy_cannot_have_together_are_the_defaults() -> None:
    assert settings_of({"placement_initial": "-20", "placement_steps": "3"}) == KeySettings()


def test_settings_report_when_keyless_vms_would_be_refused() -> None:
    assert not KeySettings().refuses_keyless_vms
    assert KeySettings(final=Fraction(0)).refuses_keyless_vms


@pytest.mark.parametrize(("allocated_mb", "found"), [(7281, 1), (7282, 2), (7283, 2), (7282 + 910, 2)])
def test_special_keys_meet_a_threshold_exactly(allocated_mb: int, found: int) -> None:
    """A ninth of the memory leaves eight ninths of 90: that is 80, and not above it."""
    state = keyed(
        *(host("h1", memory_mb=9 * 7282), host("h2")),
        *(vm("new", memory_mb=1024), vm("largest", "h1", memory_mb=allocated_mb)),
        keys=(key("#RAM", 0.0, 90.0), key("A", 1.0, 0.1), node_key("h2", "A", 0.3)),
    )
    one, other = decide_vm(state, state.vm_by_id["new"], ("h1", "h2"), DEFAULTS).hosts
    assert one.system is not None
    assert one.system.total == 90 * (1 - Fraction(allocated_mb, 9 * 7282))
    assert (one.round, other.round) == (found, 1)


HOSTS = ("h1", "h2", "h3", "h4")
LOTS = st.permutations(HOSTS).map(tuple)
NODE_KEYS = tuple(node_key(name, "GEN", number % 2) for number, name in enumerate(HOSTS))


@given(LOTS)
def test_a_lot_decides_between_hosts_that_are_equal_to_a_vm_with_keys_alone(lots: tuple[str, ...]) -> None:
    keyless = keyed(*map(host, HOSTS), vm("new"), keys=NODE_KEYS)
    assert len(set(ranks(keyless, *HOSTS, drawn=lots).values())) == 1
    state = replace(keyless, placement_keys=(*NODE_KEYS, key("GEN")))
    found = ranks(state, *HOSTS, drawn=lots)
    assert sorted(found, key=found.__getitem__) == sorted(
        HOSTS, key=lambda one: (HOSTS.index(one) % 2 == 0, lots.index(one))
    )
    assert len(set(ranks(state, *HOSTS, drawn=lots, placement_tie="engine").values())) == 2


@given(LOTS, st.sampled_from(HOSTS))
def test_hosts_that_tear_a_chain_of_hard_groups_come_last(lots: tuple[str, ...], peers_host: str) -> None:
    state = keyed(
        *(host(name) for name in HOSTS), vm("new"), vm("link"), vm("peer", peers_host),
        group("one", TOGETHER, "new link"), group("other", TOGETHER, "link peer"),
        keys=(*NODE_KEYS, key("GEN", weight=-200.0)),
    )  # fmt: skip
    found = ranks(state, *HOSTS, drawn=lots)
    assert [name for name in HOSTS if found[name] == 0] == [peers_host]
