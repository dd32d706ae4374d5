"""The state file: vectors are read, what is written is read again, what cannot be is refused by its place."""

import json
import re
from functools import reduce
from operator import getitem, is_
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Nic, state_file
from ovirt_placement.model.state_file import consistent
from ovirt_service.errors import UserError
from tests.examples import examples
from tests.paths import VECTORS as VECTOR_FOLDER
from tests.placement.model.full_state import State, full_state, loaded

VECTORS = sorted(VECTOR_FOLDER.glob("*.json"))
#: What a vector holds besides its state.
AROUND = {
    "name", "kind", "origin", "source", "notes", "request", "expected", "may_differ", "recommended",
    "engine_exception",
}  # fmt: skip


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_every_vector_is_a_state_and_survives_writing(path: Path) -> None:
    state = {key: value for key, value in json.loads(path.read_text()).items() if key not in AROUND}
    snapshot = loaded(state)
    assert state_file.loads(state_file.dumps(snapshot)) == snapshot
    assert [vm.id for vm in snapshot.vms] == [vm["id"] for vm in state["vms"]]


def test_what_is_written_says_all_that_was_read() -> None:
    state = full_state()
    written = json.loads(state_file.dumps(loaded(state)))
    assert {key: written[key] for key in state} == state


def test_required_lists_are_written_even_if_empty() -> None:
    empty: State = {"clusters": [], "hosts": [], "vms": [], "affinity_groups": [], "affinity_labels": []}
    written = json.loads(state_file.dumps(loaded({**empty, "pending": []})))
    assert written == {"format": 1, "pending": [], **empty}


#: What is taken out, in place of a value.
GONE = object()
STATE = full_state()
RULE, KEY = STATE["placement_rules"][0], STATE["placement_keys"][0]
SERVER = 'did you mean "server"?'


def changed(path: str, value: Any) -> State:
    """A state in which what stands there is GONE, has these entries besides, or is one more, or another."""
    state: Any = full_state()
    *way, last = (int(place) if place else key for place, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path))
    here = reduce(getitem, way, state)
    if value is GONE:
        del here[last]
    elif isinstance(here, list) and last == len(here):
        here.append(value)
    elif isinstance(value, dict):
        here[last].update(value)
    else:
        here[last] = value
    return state


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("vms[0].hots", "h", ': unknown key; did you mean "host"?'),
        ("vm", [], ': unknown key; did you mean "vms"?'),
        ("vms[0].disks[0].bootible", 1, ': unknown key; did you mean "bootable"?'),
        ("hosts[0].cores", GONE, ": is missing"),
        ("vms", GONE, ": is missing"),
        ("vms[0].memory_mb", "1", ": expected a whole number, not text"),
        ("vms[0].vcpus", 1.5, ": expected a whole number, not a number"),
        ("vms[0].ha", 1, ": expected true or false, not a whole number"),
        ("format", 2, ": this release reads format 1, not 2"),
        ("vms[0].host", "h9", ': no host "h9"'),
        ("vms[0].migrating_to", "x", ': no host "x"'),
        ("vms[0].pinned_hosts", ["h", "x"], '[1]: no host "x"'),
        ("vms[0].cluster", "x", ': no cluster "x"'),
        ("hosts[0].cluster", "x", ': no cluster "x"'),
        ("clusters[0].data_center", "x", ': no data center "x"'),
        ("vms[0].nics[0].vnic_profile", "x", ': no vNIC profile "x"'),
        ("vnic_profiles[0].network", "x", ': no network "x"'),
        ("affinity_groups[0].vms", ["x"], '[0]: no VM "x"'),
        ("affinity_groups[0].host_labels", ["x"], '[0]: no affinity label "x"'),
        ("affinity_labels[0].hosts", ["x"], '[0]: no host "x"'),
        ("affinity_groups[0].cluster", "x", ': no cluster "x"'),
        ("pending[0].vm", "x", ': no VM "x"'),
        ("pending[0].host", "x", ': no host "x"'),
        ("frozen_keys[0].vm", "x", ': no VM "x"'),
        ("sticky_copies[0].vm", "x", ': no VM "x"'),
        ("placement_rules[0].name", "", ": a name cannot be empty"),
        ("placement_rules[1]", RULE, '.name: "r" is the name of placement_rules[0] already'),
        ("placement_keys[1]", KEY, '.name: "k" is set there by placement_keys[0] already'),
        ("placement_keys[0].class", "user", ': "user" is not one of system, be, customer'),
        ("placement_keys[0].level", "sever", f': unknown level "sever"; {SERVER}'),
        ("placement_keys[0].level", "server_sticky", f': unknown level "server_sticky"; {SERVER}'),
        ("placement_keys[0].resource", "x", ': no host "x"'),
        ("placement_keys[0]", {"level": "server"}, '.resource: no VM "h"'),
        ("placement_keys[0]", {"level": "cluster"}, '.resource: no cluster "h"'),
        ("vms[1]", STATE["vms"][0], '.id: "v" is the id of vms[0] already'),
        ("vms[0].disks[1]", {"id": "d", "bootable": False}, '.id: "d" is the id of vms[0].disks[0] already'),
        ("networks[1]", {"id": "", "name": ""}, ".id: an id cannot be empty"),
        ("vms[0].memory_mb", -1, ": -1 is less than 0"),
        ("hosts[0].free_mb", -5, ": -5 is less than 0"),
        ("hosts[0].swap_free_mb", -1, ": -1 is less than 0"),
        ("hosts[0].free_huge_pages", {"0": 1}, ": 0 is less than 1"),
        ("hosts[0].free_huge_pages.2048", -1, ": -1 is less than 0"),
        ("vms[0].video_mb", -1, ": -1 is less than 0"),
        ("vms[0].crashed", True, ': a VM with the status "migrating" has not crashed'),
        ("vms[0].ha_priority", -1, ": -1 is less than 0"),
        ("vms[0].threads_per_core", 0, ": 0 is less than 1"),
        ("vms[0].vcpus", 0, ": 0 is less than 1"),
        ("hosts[0].cpu_percent", 101, ": 101 is not between 0 and 100"),
        ("hosts[0].load_average_5m", -0.5, ": -0.5 is less than 0"),
        ("vms[0].usage_mem_percent", -0.5, ": -0.5 is not between 0 and 100"),
        ("hosts[0].status", "Up", ': no status "Up"; did you mean "up"?'),
        ("vms[0].status", "flying", ': no status "flying"'),
        ("vms[0]", {"status": "up", "host": None}, '.host: a VM with the status "up" is on a host; name it'),
        ("vms[0]", {"status": "down"}, '.host: a VM with the status "down" is on no host; write null'),
        ("clusters[0].policy.vm_affinity_weight", -1, ": -1 is less than 0"),
        ("clusters[0].compatibility", "4.x", ': "4.x" is no version, such as 4.7'),
        ("hosts[0].memory_mb", 10**20, ": more than 1000000000000"),
        ("affinity_groups[0].priority", -1e300, ": -1e+300 is too large"),
        ("affinity_groups[0].id", "l", ': "l" is the id of an affinity label, too'),
    ],
)
def test_what_cannot_be_is_refused_by_its_place(path: str, value: Any, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        loaded(changed(path, value))
    assert str(refusal.value) == path + complaint


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is no state file (ovirt-placement snapshot makes one)"),
        (b"{", "not a JSON object: input data was truncated"),
        (b"[]", "is no state file (ovirt-placement snapshot makes one)"),
        (b'{"clusters": [],\n  "hosts": [}', "line 2, column 13: not JSON: invalid character"),
    ],
)
def test_what_is_no_json_is_refused_by_line_and_column(content: bytes, text: str) -> None:
    with pytest.raises(UserError) as refusal:
        state_file.loads(content)
    assert str(refusal.value) == text


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with pytest.raises(UserError, match=r"state\.json: cannot read the state file: No such file"):
        state_file.load(file)
    file.write_text("{}")
    with pytest.raises(UserError, match=r"state\.json: clusters: is missing"):
        state_file.load(file)
    file.write_text(json.dumps(full_state()))
    assert state_file.load(file).vms[0].id == "v"


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(found for key, inner in entries for found in _paths(inner, (*path, key)))]


@settings(max_examples=examples(40))
@given(
    st.sampled_from(_paths(full_state())[1:]),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just([]), st.just({})),
)
def test_no_damage_to_a_state_is_more_than_a_mistake(path: tuple[str | int, ...], value: Any) -> None:
    state: Any = full_state()
    here = state
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    try:
        snapshot = loaded(state)
    except UserError:
        return
    assert state_file.loads(state_file.dumps(snapshot)) == snapshot


@pytest.mark.parametrize("fields", [{"value": "gold"}, {"name": "#RAM"}, {"weight": None, "sticky": True}])
def test_mistaken_key_is_read_and_written_as_it_is(fields: dict[str, Any]) -> None:
    key = loaded(changed("placement_keys[0]", fields)).placement_keys[0]
    assert all(getattr(key, name) == value for name, value in fields.items())


# What vanished between two answers of the engine is named no more.
LISTS = ["data_centers", "hosts", "vms", "networks", "vnic_profiles", "affinity_labels"]
WHOLE = replace(
    loaded(full_state()), pending=(), placement_keys=(), frozen_keys=(), sticky_copies=(), placement_rules=()
)


@given(st.sets(st.sampled_from([*LISTS, "clusters"])))
def test_whatever_vanished_is_named_no_more(vanished: set[str]) -> None:
    groups: Any = () if "clusters" in vanished else WHOLE.affinity_groups  # they come within their clusters
    torn = replace(WHOLE, affinity_groups=groups, **dict.fromkeys(vanished, ()))
    torn = replace(torn, vms=tuple(replace(vm, migrating_to=None) for vm in torn.vms))
    repaired = consistent(torn)
    assert state_file.loads(state_file.dumps(repaired)) == repaired


def test_what_is_whole_stays_and_is_the_same_object() -> None:
    whole = loaded(full_state())
    assert consistent(whole) == whole
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
