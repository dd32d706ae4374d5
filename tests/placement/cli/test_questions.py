"""Questions on a state file, as an administrator runs them: of much to show, of little, of nothing."""

from collections.abc import Callable

import pytest

from ovirt_placement.model import Pending, SchedulingPolicy
from tests.builders import (
    APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    pending,
    rule,
    snapshot,
    vm,
)
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import StateAsking
from tests.placement.rules.placement_keys.nodes import keyed

# -- `where`, `conflicts` and `ha-check` on a state file: what tests/golden does not show.
THREE_HOSTS = (host("h1", name="north"), host("h2", name="south"), host("h3", name="east", status="error"))


def test_conflicts_of_one_vm_or_group(asking: StateAsking) -> None:
    clash = (
        *(vm(f"v{number}") for number in range(1, 6)),
        *(group("g1", TOGETHER, "v1 v2"), group("g2", APART, "v1 v2")),
        *(group("g3", TOGETHER, "v3 v4"), group("g4", APART, "v3 v4")),
    )
    for wanted in ("--vm v3", "--group g4", "--group g4 --vm v4"):
        (found,) = asking.data(1, f"conflicts {wanted}", *THREE_HOSTS, *clash)["clusters"]
        assert [one["groups"] for one in found["conflicts"]] == [["g4"]], wanted
        assert [one["groups"] for one in found["contradictions"]] == [["g3", "g4"]], wanted
    assert asking.data(0, "conflicts --vm v5", *THREE_HOSTS, *clash)["clusters"][0]["feasible"] is True


def test_ha_check_reports_what_the_engines_softer_check_alone_finds_unsafe(asking: StateAsking) -> None:
    hosts = (
        host("h1", name="north", cores=1, cpu_percent=100),
        host("h2", name="south", free_mb=3000),
        host("h3", name="east", cores=4, free_mb=3000, cpu_percent=60),
    )
    busy = vm("v2", "h2", name="cache", ha=True, usage_cpu_percent=100, vcpus=2)
    row = ["blue", "1", "safe", "unsafe", "south", "cache (by the engine's own check)"]
    found = asking.verdicts(0, "ha-check", cluster(name="blue", ha_reservation=True), *hosts, busy)
    assert found == ([row], [])


def test_ha_check_asks_only_clusters_with_reservation_unless_one_is_named(asking: StateAsking) -> None:
    rows, below = asking.verdicts(1, "ha-check --cluster cluster1", host("h1"), vm("v1", "h1", ha=True))
    assert rows == [["cluster1", "1", "unsafe", "unsafe", "h1", "v1"]]
    assert below[:2] == ["If h1 failed:", "  v1: no host is left"]


def test_why_says_the_same_of_a_host_alone_as_among_all(asking: StateAsking) -> None:
    vms = (vm("v1", "h1", name="web"), vm("v2", "h1"), vm("v3", "h1"))
    parts = (*THREE_HOSTS, *vms, group("g1", TOGETHER, "v1 v2"), group("g2", APART, "v2 v3"))
    every = asking.data(0, "why web", *parts)["hosts"]
    assert [one["accepted"] for one in every] == [True, True, False]
    for one in every:
        assert asking.data(0, f"why web {one['host']}", *parts)["hosts"] == [one]


def test_where_orders_accepted_hosts_by_points_with_the_policys_factors(asking: StateAsking) -> None:
    policy = SchedulingPolicy(weights={"SoftAffinityWeight": 1, "HostAffinityWeight": 5})
    parts = (
        cluster(scheduling_policy=policy),
        *THREE_HOSTS,
        vm("v1", name="web"),
        vm("v2", "h1", name="cache"),
        group("g1", SOFT_TOGETHER, "v1 v2", name="near", hosts_rule=SOFT_TOGETHER, hosts="h2"),
    )
    assert asking.rows(0, "where web", *parts) == [
        ["south", "5", "1", "0", "violates affinity group near of priority 1"],
        ["north", "1", "0", "1", "VMs to run with that are here: 1"],
        ["violates affinity group near of priority 1"],
        [],
        ["east is refused by the engine's Status"],
    ]


# -- Where there is nothing to show, a sentence says so, and nothing that was not looked at counts as well.
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("violations --vm v1", "No rule that was asked about is violated."),
        ("violations --cluster cluster1", "No rule that was asked about is violated."),
        ("groups list --violated", "No affinity group is violated."),
        ("groups list --violated --vm v1", "No affinity group that was asked about is violated."),
        ("groups list --cluster cluster1", "No such affinity groups."),
        ("conflicts --cluster cluster1", "No conflict concerns cluster1."),
        ("keys list --name rack", "No such keys."),
        ("keys check", "No mistakes."),
    ],
)
def test_a_sentence_stands_in_place_of_an_empty_table(
    asking: StateAsking, command: str, sentence: str
) -> None:
    assert asking.run(0, command, host("h1"), vm("v1")) == (f"{sentence}\n", "")


def test_a_vm_that_no_host_may_take(asking: StateAsking) -> None:
    web = vm("v1", name="web")
    first, *_ = asking.lines(0, "where web", host("h1", status="maintenance"), web)
    assert first == "VM web of cluster cluster1: no host may take it."
    assert asking.lines(0, "where web", web) == ["VM web of cluster cluster1: no host is there."]
    assert "has no hosts" in asking.run(2, "why web", web)[1]


def test_keys_choose_among_the_hosts_that_other_filters_admit(asking: StateAsking) -> None:
    """A peer keeps the VM on h4, though to the keys all hosts are alike."""
    hosts = [host(f"h{n}") for n in range(1, 5)]
    together = (vm("v1", name="web"), vm("v2", "h4"), group("g", TOGETHER, "v1 v2"))
    shown, _ = asking.run(0, "keys explain web", cluster(), *hosts, *together)
    assert shown.splitlines()[-1] == "Round 10 (above -10): h4."
    by = "refused by AffinityFilter, the engine's VmAffinityGroups"
    assert [line.split("  ")[-1].strip() for line in shown.splitlines()[2:6]] == [by, by, by, "chosen"]
    full = host("h4", free_mb=0)
    nowhere, _ = asking.run(0, "keys explain web", cluster(), *hosts[:3], full, *together)
    assert nowhere.splitlines()[-1] == "Other filters refuse every host: keys have nothing to choose from."


# -- At 500 hosts an answer is what a person reads, and `--all` or a filter gives the rest.
Ask = Callable[..., str]

HOSTS = 100
#: Groups of two VMs: of the first three each stands on one host and should not.
GROUPS = 40


LARGE = snapshot(
    *(host(f"h{n}", status="maintenance" if n in (7, 8) else "up") for n in range(HOSTS)),
    *(vm(f"v{n}{half}", f"h{n if half == 'a' or n < 3 else n + 1}") for n in range(GROUPS) for half in "ab"),
    *(vm(f"x{n}") for n in range(30)),
    *(group(f"g{n}", APART, f"v{n}a v{n}b") for n in range(GROUPS)),
    group("large", TOGETHER, " ".join(f"x{n}" for n in range(30))),
)


@pytest.fixture
def ask(asking: StateAsking) -> Ask:
    return lambda *words, status=0: asking.run(status, " ".join(words), LARGE)[0]


def test_why_reports_the_refusals_and_where_the_best_and_both_count_the_rest(ask: Ask) -> None:
    lines = ask("why", "v0a").splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["h0", "h7"]  # its rival is on h0
    assert len(lines) < 10
    assert lines[-1].startswith("97 of 100 hosts may take VM v0a: h1, h2, h3,")
    assert lines[-1].endswith("and 89 more (--all lists all)")
    assert "... and 77 more rows: --all shows them" in ask("where", "v0a").splitlines()
    for command, least in (("why", HOSTS), ("where", HOSTS - 3)):
        assert len(ask(command, "v0a", "--all").splitlines()) > least


def test_groups_are_counted_and_the_violated_ones_come_first(ask: Ask) -> None:
    lines = ask("groups", "list").splitlines()
    assert lines[0] == "41 affinity groups: 3 violated, 38 satisfied"
    assert [line.split()[0] for line in lines[4:10:2]] == ["g0", "g1", "g2"]
    assert lines[-1] == "... and 21 more rows: --all shows them"
    assert len(ask("groups", "list", "--all").splitlines()) > 2 * GROUPS


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("--violated", ["g0", "g1", "g2"]),
        ("--host h2", ["g2"]),
        ("--host h4", ["g3", "g4"]),
        ("--group g9", ["g9"]),
        ("--vm v5b --violated", []),
    ],
)
def test_groups_are_narrowed(ask: Ask, arguments: str, found: list[str]) -> None:
    groups = plain(ask("groups", "list", "--json", *arguments.split()))["groups"]
    assert [each["id"] for each in groups] == found


def test_a_long_list_of_members_is_cut(ask: Ask) -> None:
    shown = ask("groups", "list", "--group", "large")
    assert "and 23 more" in shown
    assert len(shown.splitlines()) == 10
    assert "x29" in ask("groups", "list", "--group", "large", "--all")


def test_violations_are_narrowed(ask: Ask) -> None:
    def groups(arguments: str, status: int = 1) -> list[list[str]]:
        reported = plain(ask("violations", "--json", *arguments.split(), status=status))["violations"]
        return [each["groups"] for each in reported]

    assert groups("") == [["g0"], ["g1"], ["g2"]]
    assert groups("--vm v1b") == groups("--host h1") == groups("--group g1") == [["g1"]]
    assert groups("--vm v9a", 0) == []
    ask("violations", "--vm", "v999", status=2)


def test_keys_explain_names_no_more_hosts_than_one_reads(asking: StateAsking) -> None:
    lines = asking.lines(0, "keys explain v1", keyed(*(host(f"h{n}") for n in range(HOSTS)), vm("v1")))
    assert lines[-1] == (
        "Round 10 (above -10): h0 or h1 or h2 or h3 or h4 or h5 or h6 or h7 and 92 more, by lot."
    )
    assert len(lines) < 30


# -- `why`: each host with its rule, group, number and unit.
STATE = snapshot(
    cluster(),
    cluster("cluster2"),
    host("h1", name="north"),
    host("h2", name="south", free_mb=100),
    host("h3", name="east", status="maintenance"),
    host("far", cluster="cluster2"),
    vm("v1", name="web"),
    vm("v2", "h1", name="cache"),
    vm("v3", "h1", name="rival"),
    vm("twin1", name="twin"),
    vm("twin2", name="twin"),
    group("g1", TOGETHER, "v1 v2", name="near"),
    group("g2", APART, "v1 v3", name="far"),
)


def reported(asking: StateAsking, *parts: Part, place: str = "h2") -> list[list[str]]:
    """What is said of VM a on a host: sentences, each with the units whose it is."""
    (answer,) = asking.data(0, f"why a {place}", host("h1"), host("h2"), *parts)["hosts"]
    return [
        [reason["sentence"], *(unit["name"] for unit in reason["by"])]
        for reason in answer["reasons"]
        if reason["veto"]
    ]


def test_the_engine_alone_refuses_what_our_units_take_in_another_way(asking: StateAsking) -> None:
    nowhere = "the engine does not allow VM a on this host: affinity group g ties it to hosts and lists none"
    found = reported(asking, vm("a"), group("g", vms="a", hosts_rule=TOGETHER))
    assert found == [[nowhere, "VmToHostsAffinityGroups"]]
    abroad = (cluster(), cluster("c2"), host("far", cluster="c2"), vm("x", "far", cluster="c2"))
    with_x = (vm("a"), *abroad, label("l", "x"), group("g", TOGETHER, "a", vm_labels=("l",)))
    assert reported(asking, *with_x) == []
    coming = "VM x of another cluster, which is on its way to host far (affinity group g)"
    found = reported(asking, *with_x, pending("x", "far"))
    assert found == [[f"the engine runs it with {coming}", "VmAffinityGroups"]]


def test_our_unit_alone_refuses_by_a_chain_and_both_by_a_peer(asking: StateAsking) -> None:
    chain = (group("g1", TOGETHER, "a b"), group("g2", TOGETHER, "b c"))
    sentence = "must run with VM {}, which is on host h1 (affinity group {})".format
    by_chain = [sentence("c", "g2"), "AffinityFilter"]
    assert reported(asking, vm("a"), vm("b"), vm("c", "h1"), *chain) == [by_chain]
    found = reported(asking, vm("c", "h1"), vm("a"), vm("b", "h1"), *reversed(chain))
    assert found == [[sentence("b", "g1"), "AffinityFilter", "VmAffinityGroups"], by_chain]


def test_what_is_only_expected_refuses_no_host_and_is_noted(asking: StateAsking) -> None:
    parts = (vm("a"), vm("b"), group("g", APART, "a b"), Pending("b", "h2", expected=True))
    assert reported(asking, *parts) == []
    expected = "expected, not confirmed: must not run with VM b, which is on host h2 (affinity group g)"
    assert expected in asking.text(0, "why a h2", host("h1"), host("h2"), *parts)
    confirmed = reported(asking, *parts[:-1], pending("b", "h2"))
    assert [sentence for sentence, *_ in confirmed] == [expected.removeprefix("expected, not confirmed: ")]


def test_a_vm_that_leaves_its_host_with_its_peers_is_judged_with_them_by_the_engine(
    asking: StateAsking,
) -> None:
    there = (vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    assert reported(asking, *there) == []
    apart = "the engine runs it apart from VM r, which is on host h2 (affinity group far)"
    found = reported(asking, *there, vm("r", "h2"), group("far", APART, "b r"))
    assert found == [[apart, "VmAffinityGroups"]]


def test_soft_rule_that_no_unit_weighs_is_noted_once_below_the_table(asking: StateAsking) -> None:
    soft = group("g", SOFT_TOGETHER, "v1 v2", name="near")
    parts = (cluster(scheduling_policy=SchedulingPolicy()), host("h1"), host("h2"), vm("v1"), vm("v2"), soft)
    unweighed = "and the cluster's policy does not enable SoftAffinityWeight"
    note = f"affinity group near has a soft rule for VM v1, {unweighed}"
    assert asking.text(0, "why v1", *parts).splitlines()[-2:] == ["", note]
    answer = asking.data(0, "why v1", *parts)
    assert [reason["unit"] for reason in answer["notes"]] == ["SoftAffinityWeight"]
    assert [host["accepted"] for host in answer["hosts"]] == [True, True]


@pytest.mark.parametrize("asked", [True, False])
def test_a_filter_that_the_engine_does_not_ask_refuses_nothing_and_that_is_said(
    asking: StateAsking, asked: bool
) -> None:
    """h1 is licensed for v2; h2 has no memory for v1 either, which the engine does ask for."""
    filters = ("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter") if asked else ()
    parts = (
        cluster(scheduling_policy=SchedulingPolicy(filters=filters)),
        *(host("h1", name="north"), host("h2", name="south", free_mb=1)),
        *(vm("v1", name="web"), vm("v2", name="cache")),
        rule("licensed", "exclusive_hosts", "v2", hosts="h1 h2"),
    )
    text = asking.text(0, "why web", *parts)
    assert "placement rule licensed" in text
    assert ("it may place the VM on north (ovirt-placement setup)" in text) is not asked
    found = [(one["unit"], one["hosts"]) for one in asking.data(0, "why web", *parts)["not_asked"]]
    assert found == ([] if asked else [("PlacementRuleFilter", ["h1"])])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("wep", 'no VM "wep"; did you mean "web"?'),
        ("twin", 'VM "twin" is ambiguous: say twin1 (down) or twin2 (down)'),
        ("web norht", 'no host of its cluster "norht"; did you mean "north"?'),
        ("web far", 'no host of its cluster "far"'),
    ],
)
def test_unknown_or_ambiguous_name_is_one_line_that_helps(
    asking: StateAsking, arguments: str, complaint: str
) -> None:
    assert asking.run(2, f"why {arguments}", STATE) == ("", f"ovirt-placement: {complaint}\n")


def test_refused_everywhere_is_an_exit_status_where_that_is_asked(asking: StateAsking) -> None:
    for vm_and_host, refused in (("web", 1), ("cache", 0), ("cache south", 1)):
        asking.run(0, f"why {vm_and_host}", STATE)
        for asked in ("--fail-if-refused", "--fail-if-refused --json"):
            assert asking.run(refused, f"why {vm_and_host} {asked}", STATE)[1] == ""
