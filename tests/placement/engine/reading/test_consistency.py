"""A snapshot made of several answers names nothing that vanished in between, whatever vanished."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.model import state_file
from tests.placement.model.test_state_file import full_state, loaded

LISTS = ["data_centers", "hosts", "vms", "networks", "vnic_profiles", "affinity_labels"]


@given(st.sets(st.sampled_from([*LISTS, "clusters"])))
def test_whatever_vanished_is_named_no_more(vanished: set[str]) -> None:
    whole = replace(loaded(full_state()), pending=(), placement_keys=(), frozen_keys=(), sticky_copies=())
    groups: Any = () if "clusters" in vanished else whole.affinity_groups  # they come within their clusters
    torn = replace(whole, affinity_groups=groups, **dict.fromkeys(vanished, ()))
    torn = replace(torn, vms=tuple(replace(vm, migrating_to=None) for vm in torn.vms))
    mended = consistent(torn)
    assert state_file.loads(state_file.dumps(mended)) == mended


def test_what_is_whole_stays_as_it_is() -> None:
    whole = loaded(full_state())
    assert consistent(whole) == whole
