"""`ovirt-placement rules` on a simulated engine: what is written, refused, tried, and what contradicts."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.model import RuleDomain, Snapshot, state_file
from tests.builders import APART, TOGETHER, cluster, group, host, rule, snapshot, vm
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import LiveEngine, Starting, StateAsking
from tests.placement.planning.solver.test_without_or_tools import WITHOUT
from tests.portal import Portal

# -- `ovirt-placement rules` on a simulated engine: what is written, refused, tried, applied, and shown.
STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", cluster="c1", tags=("rack-a",)),
    host("h2", cluster="c1", tags=("rack-b",)),
    host("h3", cluster="c1", tags=("rack-b",)),
    *(vm(name, "h1", cluster="c1", tags=("web",)) for name in ("web1", "web2", "web3")),
    vm("db1", "h2", cluster="c1"),
    group("g", vms="db1", cluster="c1", name="databases"),
)  # fmt: skip
ADD = ("rules", "add", "few", "--kind", "at_most_per_host", "--cluster", "blue", "--vms")
OWN = "rules add own --kind exclusive_hosts --cluster blue --vms"


def names(live: LiveEngine) -> list[str]:
    return [one["record"]["rule"]["name"] for one in live.data(0, "rules list")["rules"]]


def test_of_a_rule_that_is_changed_stays_what_is_not_given_and_a_vm_that_gets_the_tag_later_joins(
    live: LiveEngine,
) -> None:
    live.run(0, *ADD, "tag:web", "group:databases", "--most", "2")
    shown, _ = live.run(0, "rules show few")
    assert "  VMs (tag:web, group:databases): web1, web2, web3, db1\n" in shown
    out, _ = live.run(0, "rules edit few --soft --priority 3 --most 3")
    assert out == "changed few: at_most_per_host (most 3), soft, priority 3\n"
    tag = next(one.id for one in live.engine.queries.state.tags.values() if one.name == "web")
    Portal(live.engine).add_vm(vm("late", cluster="c1"))
    Portal(live.engine).attach_tag(tag, "late")
    ((record),) = (one["record"] for one in live.data(0, "rules show few")["rules"])
    assert record["rule"]["vms"] == ["tag:web", "group:databases"]
    assert sorted(record["vms"]) == ["db1", "late", "web1", "web2", "web3"]


def test_members_are_searched_for(live: LiveEngine) -> None:
    words = ("search:name=web* and name!=web3", "--most", "1")
    assert "violated by" not in live.run(0, *ADD, *words, "--what-if")[0]
    live.run(0, *ADD, *words)
    live.run(0, f"{OWN} search:tag=web --hosts search:name=h1")
    out, _ = live.run(0, "rules show")
    assert "  VMs (search:name=web* and name!=web3): web1, web2\n  violated\n" in out
    assert "  VMs (search:tag=web): web1, web2, web3\n  hosts (search:name=h1): h1\n  satisfied" in out
    assert "placement rule few" in live.run(1, "violations")[0]


def test_a_rule_whose_search_the_engine_cannot_parse_is_not_in_force(live: LiveEngine) -> None:
    live.run(0, f"{OWN} search:name~web --hosts h1 --force")
    unparsed = "search:name~web: the engine cannot parse it"
    assert f"  not in force\n  {unparsed}" in live.run(0, "rules show own")[0]
    assert "own" not in live.run(0, "violations")[0]
    assert any(f"own: {unparsed}" in one["sentence"] for one in live.data(1, "doctor")["findings"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("nobody --most 1", "placement rule few: there is no VM nobody; --force writes it"),
        ("tag:nothing --most 1", "placement rule few: tag:nothing names no VM; --force"),
        ("web1", "placement rule few: a rule of the kind at_most_per_host needs most"),
        ("web1 --most 0", "placement rule few: most: 0 is less than 1"),
        (f"web1 --most {'9' * 20}", f"placement rule few: most: {'9' * 20} is too large"),
        ("web1 --most 1 --soft --priority nan", "few: priority: nan is too large, or no number"),
        ("search:name~web --most 1", "few: search:name~web: the engine cannot parse it: it finds"),
        ("search:name=nobody --most 1", "placement rule few: search:name=nobody names no VM; --force"),
        ("'search:name=web* sortby name' --most 2", "takes neither sortby nor page"),
        ("'search:name=web* page 2' --most 2", "takes neither sortby nor page"),
        ("search: --most 2", "search: needs what to search for"),
        ("tag:web db1 --most 1", "4 VMs cannot run with at most 1 on each of 3 hosts"),
    ],
)
def test_what_could_not_be_satisfied_or_names_nothing_is_refused(
    live: LiveEngine, words: str, complaint: str
) -> None:
    assert complaint in live.run(2, f"{' '.join(ADD)} {words}")[1]
    assert names(live) == []


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (" ", "a placement rule needs a name"),
        ("a\nb", "holds characters that cannot be seen"),
        ("a" * 256, "256 characters are too many"),
    ],
)
def test_a_rule_whose_name_no_file_could_hold_is_refused(live: LiveEngine, name: str, complaint: str) -> None:
    add = [name if word == "few" else word for word in ADD]
    assert complaint in live.run(2, *add, "web1", "--most", "1", "--force")[1]


def test_with_force_it_is_written_and_reported_as_wrong(live: LiveEngine) -> None:
    out, _ = live.run(0, *ADD, "nobody", "web1", "--most", "1", "--force")
    assert "note: placement rule few: there is no VM nobody" in out
    assert live.run(1, "rules check")[0] == "few: there is no VM nobody\n"
    (found,) = live.data(1, "rules check")["problems"]
    assert (found["rule"]["name"], found["sentence"]) == ("few", "there is no VM nobody")


@pytest.mark.system
def test_a_file_is_applied_once_and_removes_what_it_lacks(live: LiveEngine, tmp_path: Path) -> None:
    live.run(0, *ADD, "web1", "--most", "1")
    file = tmp_path / "rules.yaml"
    file.write_text("""\
rules:
- {name: racks, kind: spread, cluster: blue, vms: ["tag:web"], max_skew: 1, domain_tags: [rack-]}
- {name: licences, kind: capacity, cluster: blue, hosts: [h1], most: 2, counted: vcpus, enforcing: false}
""")
    out, _ = live.run(0, "rules", "apply", str(file))
    assert out.splitlines() == [
        "added racks: spread (max_skew 1), hard",
        "added licences: capacity (most 2, vcpus), soft, priority 1",
        "removed few",
    ]
    exported = tmp_path / "exported.yaml"
    exported.write_text(live.run(0, "rules export")[0])
    assert live.run(0, "rules", "apply", str(exported))[0] == "Nothing to change.\n"


def test_what_would_come_of_it_is_shown_and_nothing_written_and_a_state_file_holds_the_rules(
    live: LiveEngine, tmp_path: Path
) -> None:
    words = (*ADD, "tag:web", "--most", "2")
    assert "placement rule few" in live.run(0, *words, "--what-if")[0]
    live.run(3, *words, "--fail-if", "violated")
    assert names(live) == []
    live.run(0, *words, "--fail-if", "moves>1")
    assert names(live) == ["few"]
    file = tmp_path / "state.json"
    file.write_text(live.run(0, "snapshot --devices")[0])
    state: Snapshot = state_file.load(file)
    assert state.placement_rules == (rule("few", "at_most_per_host", "tag:web", most=2, cluster="blue"),)
    assert "placement rule few" in live.run(1, "violations", "--state", str(file))[0]


# -- Rules that contradict groups, keys and one another: refused, reported by name, and written by force.
RACKS = ("--domain", "r1=h1,h2", "r2=h3")
CLASHING = snapshot(
    cluster("c1", name="blue"),
    *(host(name, cluster="c1") for name in ("h1", "h2", "h3")),
    *(vm(name, cluster="c1") for name in ("web1", "web2", "web3", "db1")),
    group("apart", APART, "web1 web2 web3", cluster="c1", name="web-apart"),
    group("db", TOGETHER, "db1 web1", cluster="c1", name="db-near"),
)  # fmt: skip
ONE_RACK = ("rules", "add", "one-rack", "--kind", "same_domain", "--cluster", "blue", *RACKS, "--vms")
NAMED = {"id": "rule:one-rack", "name": "one-rack", "is_rule": True}
CLASH = "affinity group web-apart, placement rule one-rack cannot be satisfied together"


@pytest.fixture
def clashing(serving: Starting) -> Iterator[LiveEngine]:
    with serving(CLASHING) as running:
        yield running


def test_a_rule_that_a_group_contradicts_is_refused_by_name(clashing: LiveEngine) -> None:
    _, err = clashing.run(2, *ONE_RACK, "web1", "web2", "web3")
    assert f"{CLASH}; --force writes it nevertheless" in err
    assert names(clashing) == []
    clashing.run(0, *ONE_RACK, "web1", "web2")
    clashing.run(0, "rules check")
    clashing.run(0, "conflicts")


def test_with_force_it_is_written_and_every_command_names_the_set(clashing: LiveEngine) -> None:
    out, _ = clashing.run(0, *ONE_RACK, "web1", "web2", "web3", "--force")
    assert f"note: {CLASH}" in out
    assert clashing.run(1, "rules check")[0] == f"{CLASH}\n"
    (of_check,) = clashing.data(1, "rules check")["contradictions"]
    (of_cluster,) = clashing.data(1, "conflicts")["clusters"]
    assert of_cluster["contradictions"] == [of_check]
    assert of_check["groups"] == ["apart", NAMED]
    assert (of_check["smallest"], of_check["memory"], of_cluster["feasible"]) == (True, False, False)
    out, _ = clashing.run(1, "conflicts --group one-rack")
    assert "cannot be satisfied together" in out
    assert "placement rule one-rack" in out
    assert clashing.run(0, "conflicts --group db-near")[0] == "No conflict concerns db-near.\n"
    # It is no reason to refuse another one.
    clashing.run(0, "rules add few --kind at_most_per_host --cluster blue --vms db1 --most 1")
    assert names(clashing) == ["few", "one-rack"]


def test_a_rule_that_stands_is_named_with_the_one_that_is_added(clashing: LiveEngine, tmp_path: Path) -> None:
    clashing.run(0, *ONE_RACK, "web1", "web2")
    words = ("rules", "add", "off", "--kind", "exclusive_hosts", "--cluster", "blue", "--vms", "web3")
    _, err = clashing.run(2, *words, "--hosts", "h1")
    assert "affinity group web-apart, placement rule off, placement rule one-rack cannot be satisfied" in err
    out, _ = clashing.run(0, *words, "--hosts", "h1", "--what-if")
    assert "placement rule one-rack cannot be satisfied together" in out
    file = tmp_path / "rules.yaml"
    file.write_text('rules: [{name: "off", kind: exclusive_hosts, cluster: blue, vms: [web3], hosts: [h1]}]')
    clashing.run(2, "rules", "import", str(file))
    clashing.run(0, "rules", "apply", str(file))
    assert names(clashing) == ["off"]


def test_a_group_that_a_rule_contradicts_is_warned_of(clashing: LiveEngine) -> None:
    clashing.run(0, *ONE_RACK, "db1", "web2")
    hard = "--cluster blue --hosts-rule positive --hosts-enforcing"
    _, err = clashing.run(0, f"groups add far {hard} --vm web2 --host h1")
    assert "cannot be satisfied" not in err
    _, err = clashing.run(0, f"groups add near {hard} --vm db1 --host h3")
    named = "affinity group far, affinity group near, placement rule one-rack"
    assert f"these hard rules cannot be satisfied together: {named}" in err


@pytest.mark.system
def test_without_or_tools_it_is_said_what_is_not_proven(tmp_path: Path) -> None:
    clash = rule("one-rack", "same_domain", "web1 web2 web3", cluster="c1", domains=(
        RuleDomain(name="r1", hosts=("h1", "h2")), RuleDomain(name="r2", hosts=("h3",)),
    ))  # fmt: skip
    path = tmp_path / "state.json"
    path.write_bytes(state_file.dumps(replace(CLASHING, placement_rules=(clash,))))

    def ran(status: int, *words: str) -> str:
        code = WITHOUT.replace("ovirt_enforcer", "ovirt_placement")
        command = [sys.executable, "-c", code, *words, "--state", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (status, "")
        return done.stdout

    assert "needs OR-Tools: install ovirt-placement[planner]" in ran(1, "conflicts", "--all")
    (found,) = plain(ran(1, "conflicts", "--json"))["clusters"]
    assert (found["feasible"], found["contradictions"]) == (None, [])
    assert found["unjudged"] == [["apart", "db", NAMED]]
    assert "affinity group web-apart, affinity group db-near, placement rule one-rack (needs OR-Tools" in ran(
        0, "rules", "check"
    )


@pytest.mark.parametrize(
    ("kind", "vms", "count"),
    [("capacity", "", "all"), ("at_most_per_host", "", "0"), ("capacity", "tag:gone", "0")],
)
def test_only_a_capacity_that_names_none_is_about_all_vms(
    asking: StateAsking, kind: str, vms: str, count: str
) -> None:
    written = rule("r", kind, vms, hosts="h1", most=9, cluster="c1")
    row = asking.rows(0, "rules list", replace(STATE, placement_rules=(written,)))[0]
    assert row[3] == count
