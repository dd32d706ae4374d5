"""A snapshot made of several answers names nothing that vanished in between, whatever vanished."""

from __future__ import annotations

from operator import is_
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.model import Nic
from ovirt_placement.model.files import state_file
from tests.placement.model.full_state import full_state, loaded

LISTS = ["data_centers", "hosts", "vms", "networks", "vnic_profiles", "affinity_labels"]
WHOLE = replace(
    loaded(full_state()),
    pending=(),
    placement_keys=(),
    frozen_keys=(),
    sticky_copies=(),
    placement_rules=(),
)


@given(st.sets(st.sampled_from([*LISTS, "clusters"])))
def test_whatever_vanished_is_named_no_more(vanished: set[str]) -> None:
    groups: Any = () if "clusters" in vanished else WHOLE.affinity_groups  # they come within their clusters
    torn = replace(WHOLE, affinity_groups=groups, **dict.fromkeys(vanished, ()))
    torn = replace(torn, vms=tuple(replace(vm, migrating_to=None) for vm in torn.vms))
    repaired = consistent(torn)
    assert state_file.loads(state_file.dumps(repaired)) == repaired


def test_what_is_whole_stays_as_it_is() -> None:
    whole = loaded(full_state())
    assert consistent(whole) == whole


def test_what_is_as_it_was_is_the_same_object() -> None:
    first = WHOLE.vms[0]
    after = consistent(replace(WHOLE, vms=(replace(first, host="gone"), *WHOLE.vms[1:])))
    assert after.vms[0].host is None
    assert all(one is other for one, other in zip(after.vms[1:], WHOLE.vms[1:], strict=True))
    assert all(map(is_, after.affinity_groups, WHOLE.affinity_groups))


NICS = (Nic(id="n", name="n", vnic_profile="gone"),)


@pytest.mark.parametrize(
    "change", [{"host": "gone"}, {"migrating_to": "gone"}, {"pinned_hosts": ("gone",)}, {"nics": NICS}]
)
def test_whatever_a_vm_names_is_there(change: dict[str, Any]) -> None:
    repaired = consistent(replace(WHOLE, vms=(*WHOLE.vms[1:], replace(WHOLE.vms[0], **change))))
    assert state_file.loads(state_file.dumps(repaired)) == repaired
