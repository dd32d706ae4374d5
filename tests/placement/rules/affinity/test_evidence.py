"""What the engine's filter offers cannot contradict where its VMs are: so it refutes what we expect."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import AffinityRule, Pending, SchedulingPolicy, Snapshot
from ovirt_placement.rules.affinity.evidence import judged_by_engine, refuted
from ovirt_placement.rules.verdict import Request
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm

HOSTS = ("h1", "h2", "h3")
POLICY = SchedulingPolicy(filters=("AffinityFilter",), engine_filters=("VmAffinityGroups",))


def world(
    rule: AffinityRule, expected: dict[str, str], policy: SchedulingPolicy = POLICY, members: str = "a b c"
) -> Snapshot:
    state = snapshot(
        cluster(scheduling_policy=policy),
        *map(host, HOSTS),
        *map(vm, "abc"),
        group("g", rule, members),
    )
    return replace(
        state, pending=tuple(Pending(name, at, 1024, expected=True) for name, at in expected.items())
    )


def offered(*hosts: str) -> Request:
    return Request(("a",), hosts)


def test_a_host_that_is_offered_has_no_vm_to_stay_away_from() -> None:
    assert refuted(world(APART, {"b": "h1"}), offered("h1", "h2")) == {"b": None}
    assert refuted(world(APART, {"b": "h1"}), offered("h2", "h3")) == {}


def test_of_one_host_that_is_offered_it_is_known_that_the_only_peer_is_there() -> None:
    assert refuted(world(TOGETHER, {"b": "h1"}, members="a b"), offered("h2")) == {"b": "h2"}
    assert refuted(world(TOGETHER, {"b": "h1"}), offered("h2")) == {"b": None}


def test_where_all_hosts_are_offered_no_peer_is_anywhere() -> None:
    assert refuted(world(TOGETHER, {"b": "h1"}), offered(*HOSTS)) == {"b": None}


def test_what_fits_refutes_nothing() -> None:
    assert refuted(world(TOGETHER, {"b": "h1"}), offered("h1")) == {}


def test_without_the_engines_filter_in_the_policy_its_hosts_show_nothing() -> None:
    policy = replace(POLICY, engine_filters=())
    assert refuted(world(APART, {"b": "h1"}, policy), offered("h1")) == {}
    assert judged_by_engine(world(APART, {}, policy), offered("h1")) == frozenset()


@given(
    expected=st.dictionaries(st.sampled_from("bc"), st.sampled_from(HOSTS)),
    real=st.dictionaries(st.sampled_from("bc"), st.sampled_from(HOSTS), min_size=1),
    positive=st.booleans(),
)
def test_nothing_true_is_ever_refuted(expected: dict[str, str], real: dict[str, str], positive: bool) -> None:
    """The engine offers what the definition of its filter leaves, by where the VMs really are."""
    there = set(real.values())
    hosts = [one for one in HOSTS if (one in there) is positive]
    wrong = refuted(world(TOGETHER if positive else APART, expected), offered(*hosts)) if hosts else {}
    assert all(expected[name] != real.get(name) for name in wrong)
    assert all(place in (None, real.get(name)) or len(real) > 1 for name, place in wrong.items())
