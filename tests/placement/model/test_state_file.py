"""The state file: vectors are read, what is written is read again, what cannot be is refused by its place."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import state_file
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
Change = Callable[[State], object]


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


REFUSED: dict[str, tuple[Change, str]] = {
    "unknown key": (lambda s: s["vms"][0].update(hots="h"), 'vms[0].hots: unknown key; did you mean "host"?'),
    "unknown list": (lambda s: s.update(vm=[]), 'vm: unknown key; did you mean "vms"?'),
    "unknown key deep down": (
        lambda s: s["vms"][0]["disks"][0].update(bootible=1),
        'vms[0].disks[0].bootible: unknown key; did you mean "bootable"?',
    ),
    "missing key": (lambda s: s["hosts"][0].pop("cores"), "hosts[0].cores: is missing"),
    "missing list": (lambda s: s.pop("vms"), "vms: is missing"),
    "wrong type": (
        lambda s: s["vms"][0].update(memory_mb="1"),
        "vms[0].memory_mb: expected a whole number, not text",
    ),
    "no whole number": (
        lambda s: s["vms"][0].update(vcpus=1.5),
        "vms[0].vcpus: expected a whole number, not a number",
    ),
    "number for truth": (
        lambda s: s["vms"][0].update(ha=1),
        "vms[0].ha: expected true or false, not a whole number",
    ),
    "another format": (lambda s: s.update(format=2), "format: this release reads format 1, not 2"),
    "no such host": (lambda s: s["vms"][0].update(host="h9"), 'vms[0].host: no host "h9"'),
    "no such target": (lambda s: s["vms"][0].update(migrating_to="x"), 'vms[0].migrating_to: no host "x"'),
    "no such pin": (
        lambda s: s["vms"][0].update(pinned_hosts=["h", "x"]),
        'vms[0].pinned_hosts[1]: no host "x"',
    ),
    "no such cluster of VM": (lambda s: s["vms"][0].update(cluster="x"), 'vms[0].cluster: no cluster "x"'),
    "no such cluster of host": (
        lambda s: s["hosts"][0].update(cluster="x"),
        'hosts[0].cluster: no cluster "x"',
    ),
    "no such data center": (
        lambda s: s["clusters"][0].update(data_center="x"),
        'clusters[0].data_center: no data center "x"',
    ),
    "no such profile": (
        lambda s: s["vms"][0]["nics"][0].update(vnic_profile="x"),
        'vms[0].nics[0].vnic_profile: no vNIC profile "x"',
    ),
    "no such network": (
        lambda s: s["vnic_profiles"][0].update(network="x"),
        'vnic_profiles[0].network: no network "x"',
    ),
    "no such member": (
        lambda s: s["affinity_groups"][0].update(vms=["x"]),
        'affinity_groups[0].vms[0]: no VM "x"',
    ),
    "no such label": (
        lambda s: s["affinity_groups"][0].update(host_labels=["x"]),
        'affinity_groups[0].host_labels[0]: no affinity label "x"',
    ),
    "no such labelled host": (
        lambda s: s["affinity_labels"][0].update(hosts=["x"]),
        'affinity_labels[0].hosts[0]: no host "x"',
    ),
    "no such cluster of group": (
        lambda s: s["affinity_groups"][0].update(cluster="x"),
        'affinity_groups[0].cluster: no cluster "x"',
    ),
    "no such pending VM": (lambda s: s["pending"][0].update(vm="x"), 'pending[0].vm: no VM "x"'),
    "no such pending host": (lambda s: s["pending"][0].update(host="x"), 'pending[0].host: no host "x"'),
    "no such frozen VM": (lambda s: s["frozen_keys"][0].update(vm="x"), 'frozen_keys[0].vm: no VM "x"'),
    "no name of a rule": (
        lambda s: s["placement_rules"][0].update(name=""),
        "placement_rules[0].name: a name cannot be empty",
    ),
    "the name of two rules": (
        lambda s: s["placement_rules"].append(s["placement_rules"][0]),
        'placement_rules[1].name: "r" is the name of placement_rules[0] already',
    ),
    "no such sticky VM": (lambda s: s["sticky_copies"][0].update(vm="x"), 'sticky_copies[0].vm: no VM "x"'),
    "no such class": (
        lambda s: s["placement_keys"][0].update({"class": "user"}),
        'placement_keys[0].class: "user" is not one of system, be, customer',
    ),
    "duplicate id": (lambda s: s["vms"].append(s["vms"][0]), 'vms[1].id: "v" is the id of vms[0] already'),
    "duplicate disk": (
        lambda s: s["vms"][0]["disks"].append({"id": "d", "bootable": False}),
        'vms[0].disks[1].id: "d" is the id of vms[0].disks[0] already',
    ),
    "empty id": (
        lambda s: s["networks"].append({"id": "", "name": ""}),
        "networks[1].id: an id cannot be empty",
    ),
    "negative memory": (lambda s: s["vms"][0].update(memory_mb=-1), "vms[0].memory_mb: -1 is less than 0"),
    "negative free memory": (
        lambda s: s["hosts"][0].update(free_mb=-5),
        "hosts[0].free_mb: -5 is less than 0",
    ),
    "negative swap": (
        lambda s: s["hosts"][0].update(swap_free_mb=-1),
        "hosts[0].swap_free_mb: -1 is less than 0",
    ),
    "pages of no size": (
        lambda s: s["hosts"][0].update(free_huge_pages={"0": 1}),
        "hosts[0].free_huge_pages: 0 is less than 1",
    ),
    "negative pages": (
        lambda s: s["hosts"][0].update(free_huge_pages={"2048": -1}),
        "hosts[0].free_huge_pages.2048: -1 is less than 0",
    ),
    "negative video memory": (
        lambda s: s["vms"][0].update(video_mb=-1),
        "vms[0].video_mb: -1 is less than 0",
    ),
    "a crash of what runs": (
        lambda s: s["vms"][0].update(crashed=True),
        'vms[0].crashed: a VM with the status "migrating" has not crashed',
    ),
    "negative restart priority": (
        lambda s: s["vms"][0].update(ha_priority=-1),
        "vms[0].ha_priority: -1 is less than 0",
    ),
    "no thread": (
        lambda s: s["vms"][0].update(threads_per_core=0),
        "vms[0].threads_per_core: 0 is less than 1",
    ),
    "no processor": (lambda s: s["vms"][0].update(vcpus=0), "vms[0].vcpus: 0 is less than 1"),
    "too busy": (
        lambda s: s["hosts"][0].update(cpu_percent=101),
        "hosts[0].cpu_percent: 101 is not between 0 and 100",
    ),
    "less load than none": (
        lambda s: s["hosts"][0].update(load_average_5m=-0.5),
        "hosts[0].load_average_5m: -0.5 is less than 0",
    ),
    "less than idle": (
        lambda s: s["vms"][0].update(usage_mem_percent=-0.5),
        "vms[0].usage_mem_percent: -0.5 is not between 0 and 100",
    ),
    "unknown host status": (
        lambda s: s["hosts"][0].update(status="Up"),
        'hosts[0].status: no status "Up"; did you mean "up"?',
    ),
    "unknown VM status": (lambda s: s["vms"][0].update(status="flying"), 'vms[0].status: no status "flying"'),
    "up on no host": (
        lambda s: s["vms"][0].update(status="up", host=None),
        'vms[0].host: a VM with the status "up" is on a host; name it',
    ),
    "down on a host": (
        lambda s: s["vms"][0].update(status="down"),
        'vms[0].host: a VM with the status "down" is on no host; write null',
    ),
    "negative factor": (
        lambda s: s["clusters"][0]["policy"].update(vm_affinity_weight=-1),
        "clusters[0].policy.vm_affinity_weight: -1 is less than 0",
    ),
}


@pytest.mark.parametrize(("change", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_by_its_place(change: Change, text: str) -> None:
    state = full_state()
    loaded(copy.deepcopy(state))
    change(state)
    with pytest.raises(UserError) as refusal:
        loaded(state)
    assert str(refusal.value) == text


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


def loaded_key(**fields: Any) -> Any:
    state = full_state()
    state["placement_keys"][0].update(fields)
    return state_file.loads(json.dumps(state).encode()).placement_keys[0]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"level": "sever"}, 'level: unknown level "sever"; did you mean "server"?'),
        ({"level": "server_sticky"}, 'level: unknown level "server_sticky"; did you mean "server"?'),
        ({"resource": "x"}, 'resource: no host "x"'),
        ({"level": "server"}, 'resource: no VM "h"'),
        ({"level": "cluster"}, 'resource: no cluster "h"'),
        ({"class": "user"}, 'class: "user" is not one of system, be, customer'),
    ],
)
def test_key_that_stands_nowhere_is_refused(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        loaded_key(**fields)
    assert str(refusal.value) == f"placement_keys[0].{complaint}"


def test_name_that_is_set_twice_is_refused() -> None:
    state = full_state()
    state["placement_keys"].append({**state["placement_keys"][0], "value": 5})
    with pytest.raises(
        UserError, match=r'^placement_keys\[1\]\.name: "k" is set there by placement_keys\[0\]'
    ):
        state_file.loads(json.dumps(state).encode())


@pytest.mark.parametrize("fields", [{"value": "gold"}, {"name": "#RAM"}, {"weight": None, "sticky": True}])
def test_mistaken_key_is_read_and_written_as_it_is(fields: dict[str, Any]) -> None:
    key = loaded_key(**fields)
    assert all(getattr(key, name) == value for name, value in fields.items())
