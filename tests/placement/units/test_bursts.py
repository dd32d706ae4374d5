"""For whom a filter waits in a burst: those by whose expected places alone hosts would be refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Pending
from ovirt_placement.rules.affinity.vm_filter import NEGATIVE_PEER_HERE
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Request, Verdict
from ovirt_placement.units.bursts import doubtful_peers
from ovirt_placement.units.decisions import Decision
from tests.builders import host, snapshot, vm
from tests.examples import examples

VMS, HOSTS = "abcd", ("h1", "h2")
SOME = st.sets(st.sampled_from(VMS), min_size=2)


@settings(max_examples=examples(300))
@given(SOME, st.none() | SOME, SOME, SOME, st.tuples(SOME, SOME), st.sets(st.sampled_from(HOSTS)))
def test_those_are_waited_for_who_would_have_a_host_refused_and_whose_place_is_not_sure(
    expected: set[str],
    peers: set[str] | None,
    judged: set[str],
    unsure: set[str],
    against: tuple[set[str], set[str]],
    refused_already: set[str],
) -> None:
    state = snapshot(*map(host, HOSTS), *map(vm, VMS))
    state = replace(state, pending=tuple(Pending(name, "h1", expected=True) for name in sorted(expected)))
    refusing = dict(zip(HOSTS, against, strict=True))

    def verdicts(of_all: bool) -> tuple[Verdict, ...]:
        return tuple(
            Verdict.of(name, [Reason(NEGATIVE_PEER_HERE, vm=one) for one in sorted(refusing[name])])
            if of_all
            else Verdict(name, accepted=name not in refused_already)
            for name in HOSTS
        )

    rule = SimpleNamespace(
        peers=None if peers is None else lambda snapshot, request: frozenset(peers),
        judged_by_engine=lambda snapshot, request: frozenset(judged),
        filter=lambda snapshot, request: verdicts(of_all=True),
    )
    accepted = SimpleNamespace(unsure=lambda vms: set(vms) & unsure)
    decision = SimpleNamespace(snapshot=state, accepted=accepted)
    found = doubtful_peers(
        cast("Rule", rule), cast("Decision", decision), Request(("a",), HOSTS), verdicts(of_all=False)
    )
    named = {one for name in HOSTS if name not in refused_already for one in refusing[name]}
    known = expected if peers is None else expected & peers
    assert found == (named & known & unsure) - judged - {"a"}
