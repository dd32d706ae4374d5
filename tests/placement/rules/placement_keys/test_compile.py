"""Which key of a name wins, and what is reported the others; test_against_reference.py has all together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.hierarchy import compile_keys
from tests.placement.rules.placement_keys.parts import key, node_key
from tests.placement.rules.placement_keys.reference_keys import LADDER

KEYS = st.builds(
    key,
    st.sampled_from(["K", "L"]),
    st.sampled_from([0.0, 0.5, 1.0, 2.5, "3", "gold"]),
    st.sampled_from([None, 0.0, 10.0, -7.5, 100.0]),
    st.sampled_from((*LADDER, "node", "elsewhere")),
    st.sampled_from(["system", "be", "customer"]),
)


@given(st.lists(KEYS, max_size=8))
def test_every_key_on_the_ladder_is_reported_once(keys: list[PlacementKey]) -> None:
    compiled = compile_keys(keys)
    reported = [one.key for one in compiled.ignored]
    for winner in (*compiled.system.values(), *compiled.customer.values()):
        reported += [winner.source, *winner.hidden]
    assert sorted(map(repr, reported)) == sorted(repr(one) for one in keys if one.level in LADDER)


def test_full_ladder() -> None:
    keys = [key("K", float(number), 1.0 + number, level) for number, level in enumerate(LADDER)]
    for strongest in range(len(LADDER)):
        winner = compile_keys(reversed(keys[: strongest + 1])).system["K"]
        assert (winner.value, winner.weight) == (strongest, 1 + strongest)
        assert winner.source.level == LADDER[strongest]
        assert [hidden.level for hidden in winner.hidden] == list(LADDER[:strongest])


def test_ignored_key_says_why() -> None:
    (ignored,) = compile_keys([key("K", key_class="customer", level="vdc"), node_key("h1", "K")]).ignored
    assert ignored.codes == ("customer-key-not-allowed-here",)


def test_wrong_sticky_flag_hides_no_key() -> None:
    assert compile_keys([key("K", sticky=True)]).system["K"].value == 1


def test_on_one_resource_the_customer_beats_the_billing_entity_in_any_order() -> None:
    keys = [key("K", 1.0, key_class="customer"), key("K", 2.0, key_class="be")]
    assert [compile_keys(order).customer["K"].value for order in (keys, keys[::-1])] == [1, 1]
