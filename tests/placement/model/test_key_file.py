"""Keys written as YAML and read again are the same, whatever names and ids look like; mistakes are found."""

import json
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ovirt_placement.model import Disk, Nic, PlacementKey, Snapshot, yaml_files
from ovirt_placement.model.names import be, counted
from ovirt_placement.model.yaml_files import stored_priority, stored_text
from ovirt_service.errors import UserError
from tests.builders import cluster, host, snapshot, vm
from tests.speed import of_processor

#: Few words, so that names and ids meet, and such as YAML takes for something else.
WORDS = ("h1", "h2", "v1", "web", "1", "no", "null", "a: b", "2026-01-01", "")
NAMES = st.sampled_from(WORDS)


def state(host_names: tuple[str, str], vm_names: tuple[str, str], cluster_name: str) -> Snapshot:
    """Two hosts and two VMs with these names; the first VM has everything that a key may be set on."""
    devices = {
        "template": "t1",
        "owner": "null",
        "quota": "q1",
        "cpu_profile": "1",
        "instance_type": "i1",
        "disks": (Disk(id="d1", bootable=True, profile="p1"),),
        "nics": (Nic(id="n1", name="nic1"), Nic(id="n2", name="nic1")),
    }
    return snapshot(
        cluster("c1", name=cluster_name),
        cluster("c2", name="other"),
        *(host(i, name=name, cluster="c1") for i, name in zip(("h1", "h2"), host_names, strict=True)),
        vm("v1", name=vm_names[0], cluster="c1", **devices),
        vm("v2", name=vm_names[1], cluster="c1"),
    )


ON_A_VM = "image_offer t1; server_offer 1; server v1; server v2; disk d1; disk_offer p1; nic n1; nic n2"
OTHERS = "cluster c1; cluster c2; billing_entity q1; customer null; node h1; node h2"
IMAGE = ("image", "12345678-0000-4000-8000-000000000001")
PLACES = st.sampled_from([IMAGE, *(tuple(one.split()) for one in f"{ON_A_VM}; {OTHERS}".split("; "))])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def key_lists(draw: st.DrawFn) -> list[PlacementKey]:
    """Keys of any kind, right or wrong, at most one for a place, a class and a name."""
    keys = st.builds(
        lambda place, **fields: PlacementKey(level=place[0], resource=place[1], **fields),
        PLACES,
        key_class=st.sampled_from(("system", "be", "customer")),
        name=st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=6) | NAMES,
        value=NUMBERS | st.text(max_size=4) | NAMES,
        weight=st.none() | NUMBERS,
        sticky=st.booleans(),
    )
    return draw(
        st.lists(keys, max_size=8, unique_by=lambda key: (key.level, key.resource, key.key_class, key.name))
    )


def in_order(keys: tuple[PlacementKey, ...] | list[PlacementKey]) -> list[PlacementKey]:
    return sorted(keys, key=lambda key: (key.level, key.resource, key.key_class, key.name))


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES), NAMES, key_lists(), st.booleans())
def test_what_is_written_is_read_again(
    hosts: tuple[str, str], vms: tuple[str, str], cluster: str, keys: list[PlacementKey], ascii_only: bool
) -> None:
    world = state(hosts, vms, cluster)
    described = yaml_files.described_keys(keys, world)
    as_json = json.dumps(yaml_files.described_keys(keys, world), ensure_ascii=ascii_only)
    for text in (yaml_files.encode(described), as_json):
        assert in_order(yaml_files.decode_keys(text.encode(), world)) == in_order(keys)


WORLD = state(("north", "south"), ("web", "cache"), "blue")


def test_keys_of_hosts_stand_together_under_their_names() -> None:
    values = (("h1", 1.0), ("h2", 2.5))
    keys = [PlacementKey("node", one, "system", "SAN", value, 60.0, sticky=True) for one, value in values]
    assert yaml_files.encode(yaml_files.described_keys(keys, WORLD)) == (
        "format: 1\n"
        "node_keys:\n"
        "- cluster: blue\n"
        "  name: SAN\n"
        "  weight: 60\n"
        "  sticky: true\n"
        "  values: {north: 1, south: 2.5}\n"
        "keys: []\n"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the top level: expected an object, not null"),
        ("keys: [", "not YAML: line 1, column 8: "),
        ("\x00", "not YAML: "),
        ("format: 2", "format: this release reads format 1, not 2"),
        ("nodes: []", 'nodes: unknown key; did you mean "node_keys"?'),
        ("keys: [{level: sever, resource: web, name: A, value: 1}]", 'keys[0].level: unknown level "sever"'),
        ("keys: [{level: server, resource: wep, name: A, value: 1}]", 'keys[0].resource: no VM "wep"'),
        ("keys: [{level: server, resource: web, name: NO, value: 1}]", "keys[0].name: expected text"),
        ("keys: [{level: server, resource: web, name: A, value: 1, class: user}]", '"user" is not one of'),
        ("node_keys: [{cluster: blue, name: A, values: {1: 1}}]", "node_keys[0].values: expected text"),
        ("node_keys: [{cluster: blue, name: A, values: {north: 1, north: 2}}]", '"north" stands twice'),
        ("node_keys: [{cluster: other, name: A, values: {north: 1}}]", 'host "north" is not of cluster'),
        ("node_keys: [{cluster: blue, name: A, values: {east: 1}}]", 'node_keys[0].values: no host "east"'),
    ],
)  # fmt: skip
def test_mistakes_are_reported_by_their_place(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as reported:
        yaml_files.load_keys(file, WORLD)
    assert str(reported.value).startswith(f"{file}: ")
    assert complaint in str(reported.value)


def test_file_that_is_absent_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the keys"):
        yaml_files.load_keys(tmp_path / "absent.yaml", WORLD)


def test_as_many_keys_as_vms_are_named_at_once() -> None:
    ids = [str(number) for number in range(3000)]
    world = snapshot(cluster("c1"), *(vm(one, name=f"vm{one}") for one in ids))
    keys = [PlacementKey("server", one, "system", "A", 1.0, 5.0) for one in ids]
    limit = of_processor(1)
    content = json.dumps(yaml_files.described_keys(keys, world)).encode()
    assert in_order(yaml_files.decode_keys(content, world)) == in_order(keys)
    assert limit.seconds_left() > 0


def test_name_that_several_share_asks_for_an_id() -> None:
    world = state(("same", "same"), ("web", "h1"), "blue")
    with pytest.raises(UserError, match='"same" is ambiguous: say h1 or h2'):
        yaml_files.decode_keys(b"keys: [{level: node, resource: same, name: A, value: 1}]", world)


@pytest.mark.parametrize("opening", [b"[", b"{a: ", b'{"a":', b"- "])
@pytest.mark.system
def test_what_is_nested_without_end_is_refused_in_one_line(opening: bytes) -> None:
    content = opening * 20_000
    with pytest.raises(UserError, match="not YAML") as refusal:
        yaml_files.decode_keys(content, snapshot())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["x" * 256, "a\nERROR b", "\x1b[2J"])
def test_a_name_that_nobody_could_read_is_refused(name: str) -> None:
    entry = {"level": "cluster", "resource": "c", "name": name, "value": 1}
    content = json.dumps({"keys": [entry]}).encode()
    with pytest.raises(UserError, match=r"keys\[0\]\.name: ") as refusal:
        yaml_files.decode_keys(content, snapshot(cluster("c")))
    assert str(refusal.value).isprintable()


@given(st.floats(-1e9, 1e9))
def test_a_priority_is_rounded_as_the_engine_does_and_then_stays(priority: float) -> None:
    steps = Decimal(priority * 1e7)
    rounded = (steps + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
    stored = stored_priority(priority)
    if abs(priority) < 1e8:  # beyond, what comes back may be rounded once more
        assert stored == int(rounded) / 1e7
    assert stored_priority(stored) == stored


@given(st.text(st.characters(), max_size=20))
def test_a_text_comes_back_from_xml_as_it_is_stored_or_is_refused(text: str) -> None:
    element = etree.Element("description")
    try:
        stored = stored_text(text)
    except UserError:
        try:
            element.text = text
        except (ValueError, TypeError):
            return
        raise AssertionError("XML can hold it") from None
    element.text = stored
    assert (etree.fromstring(etree.tostring(element)).text or "") == stored
    assert stored_text(stored) == stored


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 VMs are"), (1, "1 VM is"), (2, "2 VMs are"), (21, "21 VMs are")]
)
def test_amounts(number: int, said: str) -> None:
    assert f"{counted(number, 'VM')} {be(number)}" == said
