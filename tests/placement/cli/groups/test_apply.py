"""Affinity groups as a file has them, and refusals that name the groups that clash."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ovirt_placement.model import Snapshot
from tests.builders import APART, SOFT_TOGETHER, TOGETHER, cluster, group, host, label, snapshot, vm
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import LiveEngine, Starting

# -- `groups apply`, `import` and `export`: affinity groups as a file has them, against a simulated engine.
STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="east", cluster="c2"),
    vm("v1", "h1", name="web1", cluster="c1"),
    vm("v2", "h1", name="web2", cluster="c1"),
    vm("v3", "h2", name="db", cluster="c1"),
    vm("v4", "h3", name="far", cluster="c2"),
    label("l1", "v3"),
    group("g1", TOGETHER, "v1 v2", cluster="c1", name="near"),
    group("g2", APART, "v1 v3", cluster="c1", name="apart"),
    group("g3", APART, "v4", cluster="c2", name="lonely"),
)


Load = Callable[..., tuple[str, str]]


@pytest.fixture
def load(live: LiveEngine, tmp_path: Path) -> Load:
    """Run an action that reads a file with this text; it must end with this status."""

    def run(status: int, action: str, text: str, *options: str) -> tuple[str, str]:
        file = tmp_path / "groups.yaml"
        file.write_text(text)
        return live.run(status, "groups", action, str(file), *options)

    return run


def groups(live: LiveEngine) -> dict[str, tuple[str, ...]]:
    """The VMs of each group as the engine holds them."""
    return {
        each.name: tuple(sorted(each.vms))
        for one in ("c1", "c2")
        for each in live.engine.queries.state.groups_of(one)
    }


NEAR, AWAY = {"near": ("v1", "v2"), "apart": ("v1", "v3")}, {"lonely": ("v4",)}
HARD = "- {{name: {}, cluster: blue, vms_rule: {}, vms_enforcing: true, vms: [{}]}}\n"
NEW = "- {name: new, cluster: blue, hosts_rule: positive, hosts: [north], vm_labels: [l1]}\n"
IN_ORDER = HARD.format("near", "positive", "web1, db") + HARD.format("apart", "negative", "db, web2")


@pytest.mark.parametrize(
    ("action", "text", "found"),
    [
        ("import", f"groups:\n{NEW}", {**NEAR, **AWAY, "new": ()}),
        (
            "apply",
            f"groups:\n{NEW}- {{name: apart, cluster: blue, vms: [db]}}\n",
            {"apart": ("v3",), "new": (), **AWAY},
        ),
        ("apply", "clusters: [red]\n", NEAR),
        ("import", f"groups:\n{IN_ORDER}", {"near": ("v1", "v3"), "apart": ("v2", "v3"), **AWAY}),
    ],
    ids=["others stay", "others go", "a cluster without any", "in another order"],
)
def test_there_are_the_groups_of_the_file(
    live: LiveEngine, load: Load, action: str, text: str, found: dict[str, tuple[str, ...]]
) -> None:
    before = groups(live).keys()
    said = plain(load(0, action, text, "--json")[0])
    assert groups(live) == found
    assert {*said["added"]} == found.keys() - before
    assert {*said["removed"]} == before - found.keys()


CLASHING = HARD.format("near", "positive", "web1, db") + HARD.format("apart", "negative", "web1, web2")
UNHELD = "groups[0].description: the engine's API cannot hold the character"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (CLASHING, "in any order"),
        ("- {name: n, cluster: blue}\n- {name: b, cluster: blue, vms: [far]}", "belongs to cluster red"),
        ("- {name: new, cluster: blue, vms: [web9]}", 'no VM "web9"'),
        ("- {name: g1, cluster: red}\n" + HARD.format("b", "negative", "web1, web2"), "in any order"),
        ("- {name: new, cluster: blue, vmz: [web1]}", 'did you mean "vms"'),
        ("- {name: n, cluster: blue}\n- {name: n, cluster: blue}", "is the name of groups[0] already"),
        ('- {name: p1, cluster: blue, description: "\\0"}', f"{UNHELD} \\x00"),
        ('- {name: p1, cluster: blue, description: "\\ud800"}', f"{UNHELD} \\ud800"),
        ("- {name: p1, cluster: blue, priority: 1.0e+300}", "groups[0].priority: a priority is a number"),
        ("- {name: p1, cluster: blue, priority: .nan}", "groups[0].priority: a priority is a number"),
    ],
)
def test_what_the_engine_would_refuse_or_cannot_keep_is_refused_before_anything_is_sent(
    live: LiveEngine, load: Load, text: str, because: str
) -> None:
    """So are groups that only get there through a clash."""
    assert because in load(2, "import", f"groups:\n{text}\n")[1]
    assert live.changes == []


def test_what_is_exported_is_what_is_there_and_a_condition_stops_it(live: LiveEngine, load: Load) -> None:
    off = (
        "{name: north, cluster: blue, hosts_rule: positive, hosts_enforcing: true, vms: [db], hosts: [north]}"
    )
    load(3, "import", f"groups: [{off}]", "--fail-if", "violated")
    assert live.changes == []
    exported, _ = live.run(0, "groups export")
    assert plain(load(0, "apply", exported, "--dry-run", "--json")[0])["changed"] is False
    live.run(0, "groups remove near")
    load(0, "apply", exported)
    assert groups(live) == {**NEAR, **AWAY}


def test_a_file_whose_texts_and_numbers_the_engine_keeps_otherwise_is_imported_once(
    live: LiveEngine, load: Load
) -> None:
    text = (
        "groups:\n"
        "- {name: p1, cluster: blue, priority: 0.30000000000000004}\n"
        "- {name: p2, cluster: blue, priority: 1.0e-8}\n"
        "- {name: p4, cluster: blue, priority: 123456789.1234567}\n"
        '- {name: p5, cluster: blue, description: "  a\\n b\\t "}\n'
        '- {name: p6, cluster: blue, description: "a\\r\\nb\\rc"}\n'
        '- {name: p7, cluster: blue, description: "😀 é <&> \' \\u2028"}\n'
    )
    load(0, "import", text)
    live.changes.clear()
    out, _ = load(0, "import", text)
    assert (out, live.changes) == ("Nothing to change.\n", [])


# -- A refusal names the groups that clash with the one being added or changed, and others by themselves.
HARD_OFF = "--hosts-rule negative --hosts-enforcing"
ALREADY = "the engine saves no group of this cluster as long as others clash: "


def state(*groups: object) -> Snapshot:
    return snapshot(
        cluster("c1", name="blue"),
        host("h1", name="north", cluster="c1"),
        host("h2", name="south", cluster="c1"),
        *(vm(name, cluster="c1") for name in "abcdef"),
        *groups,
    )


def chain(name: str, vms: str) -> object:
    return group(name, SOFT_TOGETHER, vms, cluster="c1")


def sentences(err: str) -> list[tuple[bool, list[str], list[str]]]:
    """Of each clash whether it is there already, the groups and the VMs."""
    found = re.findall(r"([^;(]*)\(groups ([^;]*); VMs ([^;)]*)", err)
    return [(ALREADY in before, groups.split(", "), vms.split(", ")) for before, groups, vms in found]


def refused(live: LiveEngine, arguments: str) -> list[tuple[bool, list[str], list[str]]]:
    return sentences(live.run(2, f"groups {arguments}")[1])


def add(live: LiveEngine, arguments: str) -> list[tuple[bool, list[str], list[str]]]:
    return refused(live, f"add new --cluster blue {arguments}")


CHAIN = (chain("ab", "a b"), chain("bc", "b c"), chain("cd", "c d"))
KEPT = (chain("ab", "a b"), chain("ef", "e f"), group("keep", APART, "a c d", cluster="c1"))
ON = [group(f"on-{name}", hosts_rule=TOGETHER, vms=name, hosts="h1", cluster="c1") for name in "abc"]


@pytest.mark.parametrize(
    ("others", "arguments", "named", "vms"),
    [
        (CHAIN, "--vms-rule negative --vm a --vm b", ["new", "ab"], ["a", "b"]),
        (CHAIN, "--vms-rule negative --vm a --vm c", ["new", "ab", "bc"], ["a", "c"]),
        (KEPT, "--vms-rule positive --vm b --vm c", ["new", "ab", "keep"], ["a", "c"]),
        (ON, f"{HARD_OFF} --vm b --host north", ["new", "on-b"], ["b"]),
    ],
    ids=["a link", "two links", "what closes a chain", "the opposite for hosts"],
)
def test_only_what_it_clashes_with_is_named(
    serving: Starting, others: Sequence[object], arguments: str, named: list[str], vms: list[str]
) -> None:
    with serving(state(*others)) as live:
        assert add(live, arguments) == [(False, named, vms)]


@pytest.fixture
def spoilt(serving: Starting) -> Iterator[LiveEngine]:
    """Two groups clash over `f`, which the engine does not check when members are added one by one."""
    ties = {"on": ("f", "h2"), "mine": ("a", "h1")}
    tied = (group(one, hosts_rule=TOGETHER, vms=v, hosts=h, cluster="c1") for one, (v, h) in ties.items())
    with serving(state(*tied, group("off", hosts_rule=APART, hosts="h2", cluster="c1"))) as live:
        live.engine.affinity_groups.add_member("off", "vms", "f")
        yield live


def test_what_clashed_before_is_said_by_itself_and_repaired_by_what_is_named(spoilt: LiveEngine) -> None:
    others = (True, ["off", "on"], ["f"])
    assert add(spoilt, f"{HARD_OFF} --vm a --host north") == [(False, ["new", "mine"], ["a"]), others]
    assert add(spoilt, "--vm b") == refused(spoilt, "edit mine --priority 3") == [others]
    assert refused(spoilt, "edit on --priority 3") == [(False, ["on", "off"], ["f"])]
    assert spoilt.changes == []
    spoilt.run(0, "groups edit off --unchecked --remove-vm f")
    spoilt.run(0, "groups edit mine --priority 3")


def test_warnings_name_no_more_than_refusals(serving: Starting) -> None:
    soft = [group(f"on-{one}", hosts_rule=SOFT_TOGETHER, vms=one, hosts="h1", cluster="c1") for one in "abc"]
    with serving(state(*soft, group("off-c", hosts_rule=APART, vms="c", hosts="h1", cluster="c1"))) as live:
        _, err = live.run(0, f"groups add new --cluster c1 {HARD_OFF} --vm b --host h1")
        assert sentences(err) == [(False, ["new", "on-b"], ["b"])]
