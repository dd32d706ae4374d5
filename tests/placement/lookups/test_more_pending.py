"""What a snapshot keeps when more is laid over it as pending is what one decoded again would find out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.lookups.index import with_more_pending
from ovirt_placement.model import Pending, Snapshot
from ovirt_placement.model.files import state_file
from ovirt_placement.rules.catalogue import UNITS, find_violations
from ovirt_placement.rules.elements.rule import UnitKind
from ovirt_placement.rules.elements.verdict import BalanceRequest, Request
from tests.builders import CLUSTER
from tests.examples import examples
from tests.integration.worlds import whole_policies, worlds
from tests.placement.rules.strategies import HOSTS, VMS

ENTRIES = st.lists(
    st.tuples(st.sampled_from(VMS), st.sampled_from(HOSTS)), min_size=1, max_size=4, unique_by=lambda e: e[0]
)


def answers(state: Snapshot) -> list[object]:
    """What every unit, and the search for violations, says about everything."""
    found: list[object] = [find_violations(state, CLUSTER)]
    parameters = {**state.clusters[0].scheduling_properties, "placement_tie": "engine"}
    for rule in UNITS.values():
        for name in VMS:
            request = Request((name,), HOSTS, parameters=parameters, as_engine=True, drawn=HOSTS)
            if rule.kind is UnitKind.FILTER and rule.filter:
                found.append(tuple(rule.filter(state, request)))
            if rule.kind is UnitKind.WEIGHT and rule.weight:
                found.append(tuple(rule.weight(state, request)))
        if rule.balance:
            found.append(rule.balance(state, BalanceRequest(HOSTS, parameters, {})))
    return found


@settings(deadline=None, max_examples=examples(25))
@given(worlds(whole_policies()), ENTRIES, ENTRIES)
def test_answers_are_those_of_a_snapshot_decoded_again(
    state: Snapshot, first: list[tuple[str, str]], second: list[tuple[str, str]]
) -> None:
    answers(state)
    like = state
    for entries in (first, [*first, *second], second):
        more = tuple(Pending(vm, host, 1024) for vm, host in entries)
        laid = with_more_pending(state, more, like=like)
        fresh = state_file.loads(state_file.dumps(laid))
        assert answers(laid) == answers(fresh)
        like = laid
