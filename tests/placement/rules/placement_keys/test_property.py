"""Whatever a user writes into the VM custom property, it stops no start, and is either keys or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_keys.mistakes import UnreadableProperty, find_mistakes
from ovirt_placement.rules.placement_keys.placing import compiled_keys, filter_hosts, rank_hosts
from ovirt_placement.rules.verdict import Request
from tests.builders import host, vm
from tests.placement.rules.placement_keys.parts import keyed, node_key

ENTRIES = st.from_regex(r"\A[A-Z_#]{1,3}:-?[0-9]{1,50}(\.[0-9]{1,3})?:-?[0-9]{1,3}\Z")
TEXTS = st.text(alphabet="A_#:,.;=-019 \n", max_size=20) | st.lists(ENTRIES, max_size=3).map(",".join)


def state(text: str) -> Snapshot:
    """Two hosts that show something, and a VM with this property."""
    return keyed(
        host("h1"),
        host("h2"),
        vm("v1", custom_properties={"placement_keys": text}),
        keys=(node_key("h1", "_A", 1.0), node_key("h2", "_A", 0.0)),
    )


@given(TEXTS)
def test_no_text_stops_a_start(text: str) -> None:
    request = Request(("v1",), ("h1", "h2"))
    assert all(verdict.accepted for verdict in filter_hosts(state(text), request))
    assert {weight.host for weight in rank_hosts(state(text), request)} == {"h1", "h2"}


@given(TEXTS)
def test_text_of_another_form_is_reported_and_sets_nothing(text: str) -> None:
    world = state(text)
    reported = [one for one in find_mistakes(world) if isinstance(one, UnreadableProperty)]
    if reported:
        compiled = compiled_keys(world, "v1")
        assert reported == [UnreadableProperty("v1", text)]
        assert (dict(compiled.system), dict(compiled.customer), compiled.ignored) == ({}, {}, ())
    else:
        assert all(len(entry.split(":")) == 3 for entry in text.split(",") if text)
