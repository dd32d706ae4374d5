"""A snapshot made of several answers names nothing that vanished in between, whatever vanished."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.reading.consistency import Consistency, consistent
from ovirt_placement.model import Snapshot, state_file
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
#: A list, what becomes of it, and the field of its first record that says something else, with what it says.
CHANGES = [
    *((part, "vanishes", None) for part in (*LISTS, "clusters", "affinity_groups")),
    *((part, "turns", None) for part in ("clusters", "hosts", "vms", "affinity_groups")),
    ("hosts", "cluster", "gone"), ("hosts", "free_mb", 1), ("hosts", "id", "other"),
    ("vms", "host", "gone"), ("vms", "migrating_to", "gone"), ("vms", "cluster", "gone"), ("vms", "ha", True),
    ("vms", "pinned_hosts", ("gone",)), ("vms", "nics", ()), ("vms", "id", "other"), ("vms", "host", None),
    ("clusters", "data_center", "gone"), ("clusters", "ha_failures", 2), ("vnic_profiles", "network", "gone"),
    ("affinity_groups", "vms", ("gone",)), ("affinity_groups", "hosts", ("gone",)),
    ("affinity_groups", "vm_labels", ("gone",)), ("affinity_groups", "priority", 7.0),
]  # fmt: skip


def changed(state: Snapshot, part: str, change: str, value: Any) -> Snapshot:
    records = getattr(state, part)
    if change == "vanishes" or not records:
        return replace(state, **{part: ()})
    if change == "turns":
        return replace(state, **{part: (*records[1:], records[0])})
    return replace(state, **{part: (replace(records[0], **{change: value}), *records[1:])})


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


@given(st.lists(st.tuples(st.sampled_from(CHANGES), st.booleans()), max_size=5))
def test_one_after_the_other_is_as_each_by_itself(course: list[tuple[tuple[str, str, Any], bool]]) -> None:
    """Each change is of what was reported before, or of the whole: then what was changed comes back."""
    consistency, reported = Consistency(), WHOLE
    assert consistency.of(reported) == consistent(reported)
    for change, further in course:
        reported = changed(reported if further else WHOLE, *change)
        made = consistency.of(reported)
        assert made == consistent(reported)
        assert consistency.of(replace(reported)).vms == made.vms


def test_what_is_as_it_was_is_the_same_object() -> None:
    consistency = Consistency()
    before = consistency.of(WHOLE)
    after = consistency.of(changed(WHOLE, "vms", "host", "gone"))
    assert after.affinity_groups is before.affinity_groups
    assert after.vms[0].host is None
    assert all(one is other for one, other in zip(after.vms[1:], before.vms[1:], strict=True))
