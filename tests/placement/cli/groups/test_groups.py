"""`ovirt-placement groups` against a simulated engine, which judges again; and how groups stand."""

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.groups import groups_list
from ovirt_placement.config import load
from ovirt_placement.store.enforcer.observations import (
    LostMembership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
)
from ovirt_placement.store.sql.access import opened
from ovirt_simulator.core.entities import AffinityGroup
from tests.builders import (
    APART,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.cli.documents import parsed
from tests.placement.cli.live_engine import LiveEngine, Starting, StateAsking

# -- `ovirt-placement groups` against a simulated engine, which judges again whatever it is asked.
BLUE = cluster("c1", name="blue")
RED = cluster("c2", name="red")
STATE = snapshot(
    BLUE,
    RED,
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="east", cluster="c2"),
    vm("v1", "h1", name="web", cluster="c1"),
    vm("v2", "h1", name="cache", cluster="c1"),
    vm("v3", name="db", cluster="c1"),
    vm("v4", "h3", name="far", cluster="c2"),
    label("l1", "v2 v4", "h2"),
    label("l2", "v1"),
    group("g1", TOGETHER, "v1 v2", cluster="c1", name="near"),
    group("g2", hosts_rule=SOFT_APART, hosts="h2", vms="v3", cluster="c1", name="off", priority=2.5),
    group("g3", SOFT_TOGETHER, "v4", cluster="c2", name="lonely"),
)


def saved(live: LiveEngine, name: str) -> AffinityGroup:
    """The group of this name as the engine holds it."""
    (found,) = (
        each for c in ("c1", "c2") for each in live.engine.queries.state.groups_of(c) if each.name == name
    )
    return found


def names(live: LiveEngine, *arguments: str) -> list[str]:
    return [each["name"] for each in live.data(0, "groups", "list", *arguments)["groups"]]


def test_list_can_be_narrowed_to_a_cluster_or_a_vm(live: LiveEngine) -> None:
    assert names(live, "--cluster", "red") == ["lonely"]
    assert names(live, "--vm", "db") == ["off"]
    live.engine.affinity_groups.add_member("g2", "vm_labels", "l1")
    assert names(live, "--vm", "cache") == ["near", "off"]
    out, _ = live.run(0, "groups list --vm far")
    assert "label l1: cache on north, far on east (of cluster red)" in out


def test_add_sets_rules_priority_members_and_labels(live: LiveEngine) -> None:
    words = (
        "groups add both --cluster blue --priority 7.25 --vms-rule negative --hosts-rule positive"
        " --hosts-enforcing --vm v1 --host north --vm-label l2 --host-label l1 --description 'as given'"
    )
    out, err = live.run(0, words)
    group = saved(live, "both")
    assert (out, err) == (f"added affinity group both ({group.id})\n", "")
    assert group == AffinityGroup(
        id=group.id, name="both", cluster="c1", priority=7.25, description="as given", vms_rule=SOFT_APART,
        hosts_rule=TOGETHER, vms=("v1",), hosts=("h1",), vm_labels=("l2",), host_labels=("l1",),
    )  # fmt: skip


def test_edit_changes_what_is_named_and_nothing_else(live: LiveEngine) -> None:
    before = saved(live, "near")
    members = "--remove-vm cache --add-vm db --add-host south"
    reported = live.data(0, f"groups edit near --name closer --no-vms-enforcing {members}")
    after = saved(live, "closer")
    assert after == replace(before, name="closer", vms_rule=SOFT_TOGETHER, vms=("v1", "v3"), hosts=("h2",))
    assert (reported["group"]["vms"], reported["warnings"]) == (["v1", "v3"], [])
    assert live.run(0, "groups edit closer --no-vms-enforcing")[0].startswith("left as it is: ")
    live.run(0, "groups edit closer --vms-rule disabled --remove-vm web --remove-vm db")
    assert (saved(live, "closer").vms, saved(live, "closer").vms_rule) == ((), DISABLED)


def test_remove_by_name_or_id(live: LiveEngine) -> None:
    assert live.run(0, "groups remove near")[0] == "removed affinity group near (g1)\n"
    live.run(0, "groups remove g2")
    assert names(live) == ["lonely"]


def test_what_vms_lost_with_their_cluster_is_listed_until_it_is_forgotten(live: LiveEngine) -> None:
    assert live.run(0, "groups lost")[0] == "Nothing is lost.\n"
    unknown = 'ovirt-placement: no VM that lost a membership "web"\n'
    assert live.run(2, "groups lost --forget web")[1] == unknown
    with opened(MembershipStore, load(live.config, {})) as store:
        kinds = (MembershipKind.GROUP, "g1", "near"), (MembershipKind.LABEL, "l1", "ours")
        store.change(
            MembershipChange(lost=tuple(LostMembership("v1", "web", "c1", "blue", *one) for one in kinds))
        )
    (one,) = parsed(live.run(0, "groups lost --json")[0])["losses"]
    names = [[each["name"] for each in one[kind]] for kind in ("groups", "labels")]
    assert (one["vm"]["name"], one["cluster"]["name"], names) == ("web", "blue", [["near"], ["ours"]])
    title, _, row, *_ = live.run(0, "groups lost")[0].splitlines()
    assert title.split() == ["VM", "former", "cluster", "groups", "labels", "since"]
    assert {"web", "blue", "near", "ours"} <= {*row.split()}
    live.run(0, "groups lost --forget web")
    assert live.run(0, "groups lost")[0] == "Nothing is lost.\n"


TIED = "VMs are to run together and apart (groups new, near; VMs web, cache)"
#: What the engine would refuse: the arguments, and what is said.
REFUSED = [
    ("add lonely --cluster blue", 'the name "lonely" is used already; names are unique over all clusters'),
    ("add one² --cluster blue", 'the name "one²": a name has 1 to 255 letters'),
    ("add new --cluster blue --vm far", "VM far belongs to cluster red, the group to cluster blue"),
    ("add new --cluster blue --host east", "host east belongs to cluster red"),
    ("add new --cluster blue --vm web --vm v1", "VM web is a member already"),
    ("add new --cluster blue --vm-label l1 --vm-label l1", "VM label l1 is a member already"),
    ("add new --cluster blue --vm web --vm cache --vms-rule negative", TIED),
    ("add new --cluster blue --vms-rule negative --vm web --vm-label l1", TIED),
    ("edit near --unchecked --priority 3", "--unchecked goes with members only"),
    ("remove lonly", 'ovirt-placement: no affinity group "lonly"; did you mean "lonely"?\n'),
    ("list --vm wep", 'no VM "wep"'),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED)
def test_what_the_engine_would_refuse_is_refused_with_the_reason_before_it_is_asked(
    live: LiveEngine, arguments: str, reason: str
) -> None:
    _, err = live.run(2, "groups", *arguments.split())
    assert reason in err
    assert err.count("\n") == 1
    assert live.changes == []


def test_what_the_engine_lets_through_although_it_cannot_be_meant_is_warned_of(live: LiveEngine) -> None:
    _, err = live.run(0, "groups edit near --add-vm-label l1")
    uncounted = "label l1 brings VM far of cluster red: our rules do not count it, the engine's do"
    assert err == f"warning: {uncounted}\n"
    hard = "--cluster blue --hosts-rule positive --hosts-enforcing"
    nowhere = "there are no hosts: the engine lets no host run its VMs"
    assert nowhere in live.run(0, f"groups add nowhere {hard}")[1]
    live.run(0, f"groups add n {hard} --vm web --host north")
    reported = live.data(0, f"groups add s {hard} --vm cache --host south")
    named = ", ".join(f"affinity group {name}" for name in ("n", "near", "s"))
    assert f"these hard rules cannot be satisfied together: {named}" in reported["warnings"]


def test_members_one_by_one_escape_the_engines_checks_and_are_warned_of_and_taken_out_again(
    live: LiveEngine,
) -> None:
    _, err = live.run(0, "groups edit near --unchecked --add-vm far --remove-vm web")
    assert saved(live, "near").vms == ("v2", "v4")
    assert "the engine does not check this: VM far belongs to cluster red" in err
    near = "/clusters/c1/affinitygroups/g1/vms"
    assert live.changes == [f"DELETE {near}/v1", f"POST {near}"]
    _, err = live.run(2, "groups edit near --priority 3")
    assert "VM far belongs to cluster red" in err
    live.run(0, "groups edit near --priority 3 --remove-vm far")
    assert (saved(live, "near").vms, saved(live, "near").priority) == (("v2",), 3.0)


@pytest.mark.parametrize("member", ["host h3", "vm-label l1", "host-label l1"])
def test_every_kind_of_member_goes_one_by_one(live: LiveEngine, member: str) -> None:
    option, named = member.split()
    for deed, expected in (("add", (named,)), ("remove", ())):
        live.run(0, f"groups edit g1 --unchecked --{deed}-{option} {named}")
        assert getattr(saved(live, "near"), f"{option.replace('-', '_')}s") == expected


def test_who_may_not_learns_which_permit_it_takes(serving: Starting) -> None:
    needed = "may not change affinity groups: it needs the permit manipulate_affinity_groups"
    with serving(STATE, username="reader@internal") as live:
        assert f"reader@internal {needed}" in live.run(2, "groups add new --cluster blue")[1]


# -- `groups list` shows how groups stand: whether they are violated, and where their members run.
STANDING = snapshot(
    host("h1", name="north"),
    host("h2", name="south"),
    vm("v1", "h1", name="web"),
    vm("v2", "h1", name="cache"),
    vm("v3", "h2", name="db"),
    vm("v4", name="idle"),
    label("l1", "v3"),
    group("g1", SOFT_TOGETHER, "v1 v2 v4", name="kept"),
    group("g2", SOFT_TOGETHER, "v1", name="split", vm_labels=("l1",)),
    group("g3", APART, "v1 v2 v3", name="crowded", hosts_rule=SOFT_APART, hosts="h2"),
    group("g4", DISABLED, "v1 v3", name="asks-nothing"),
    group("g5", TOGETHER, "v1 v4", name="left"),
    group("g6", TOGETHER, "v3 v4", name="right"),
)


def test_how_groups_stand(asking: StateAsking) -> None:
    def names_of(found: list[dict[str, str]]) -> list[str]:
        return [each["name"] for each in found]

    listed = {one["name"]: one for one in parsed(asking.text(0, "groups list --json", STANDING))["groups"]}
    assert [name for name, one in listed.items() if not one["violated"]] == ["kept", "asks-nothing"]
    rules = listed["crowded"]["violated_rules"]
    assert [(rule["asks"], rule["hard"], names_of(rule["offenders"])) for rule in rules] == [
        ("apart", True, ["web", "cache"]),
        ("off its hosts", False, ["db"]),
    ]
    # Hard groups that a VM ties, though it is down.
    assert [names_of(rule["only_with"]) for rule in listed["left"]["violated_rules"]] == [["right"]]
    running = [(one["vm"]["name"], one["host"]["name"]) for one in listed["split"]["running"]]
    assert running == [("web", "north"), ("db", "south")]


def test_the_list_cuts_what_labels_bring(asking: StateAsking) -> None:
    many = tuple(vm(f"m{number:02}", "h2") for number in range(20))
    brought = label("l2", " ".join(one.id for one in many))
    wide = group("g7", DISABLED, name="wide", vm_labels=("l2",))
    state = snapshot(*STANDING.hosts, *many, brought, wide)
    assert "m07 on south and 12 more" in asking.text(0, "groups list", state)
    assert "m19 on south" in asking.text(0, "groups list --all", state)


def test_members_that_a_label_brings_are_counted_once() -> None:
    """The page shows how many of them run."""
    (split,) = groups_list(STANDING, STANDING.clusters, group="g2").groups
    assert (len(split.running), split.size) == (2, 2)
