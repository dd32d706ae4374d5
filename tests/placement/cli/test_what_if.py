"""What would come of a change or a maintenance is said before anything is written, and comes true."""

import dataclasses
from collections import Counter
from contextlib import suppress

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.setup import Target, read_overview
from ovirt_placement.answers.setup.plan import plan
from ovirt_placement.engine.policies import Policy
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.forecast import difference
from ovirt_placement.model import SchedulingPolicy
from tests.builders import APART, CLUSTER, TOGETHER, Part, cluster, group, host, key, pending, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting, StateAsking
from tests.placement.engine_server import connected

# -- What would come of a change is said before anything is written, and nothing is written then.
GIB = 1024
STATE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    *(
        host(name, cluster="c1", memory_mb=16 * GIB, free_mb=free * GIB, cores=8)
        for name, free in (("h1", 8), ("h2", 12), ("h3", 12))
    ),
    vm("a", "h1", cluster="c1", name="web1", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True),
    vm("b", "h1", cluster="c1", name="web2", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True),
    vm("c", "h2", cluster="c1", name="cache", needs_mb=4 * GIB, guaranteed_mb=4 * GIB),
    vm("d", "h3", cluster="c1", name="web3", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True),
    group("g", TOGETHER, "a b", cluster="c1", name="near"),
)
THERE = (
    "groups add there --cluster blue --hosts-rule positive --hosts-enforcing --vm web1 --vm web2"
    " --host h2 --host h3"
)


def test_migrations_and_failures_are_counted(live: LiveEngine) -> None:
    (blue,) = live.data(0, f"{THERE} --what-if")["clusters"]
    assert [rule["groups"] for rule in blue["violated"]] == [["there"]]
    assert [(move["vms"], move["to"]) for move in blue["moves"]] == [(["a", "b"], "h3")]
    assert blue["failures_now"] == {"count": 2, "exact": False}
    assert blue["failures_settled"] == {"count": 1, "exact": True}
    apart = (
        "groups add apart --cluster blue --vms-rule negative --vms-enforcing --vm web1 --vm web2 --what-if"
    )
    assert "not repaired: affinity group apart, hard: apart" in live.run(0, apart)[0]
    assert live.changes == []


@pytest.mark.parametrize(
    ("conditions", "holding"),
    [
        ("violated", ["violated>0 (1)"]),
        ("moves>=2, failures<2", ["moves>=2 (2)", "failures<2 (1)"]),
        ("moves>2", []),
    ],
)
def test_conditions_keep_from_writing(live: LiveEngine, conditions: str, holding: list[str]) -> None:
    found = live.data(3 if holding else 0, f"{THERE} --fail-if '{conditions}'")
    assert found.get("fails", []) == holding
    names = [one.name for one in live.engine.queries.state.groups_of("c1")]
    assert names == (["near"] if holding else ["near", "there"])


def test_a_mistaken_condition_is_named(live: LiveEngine) -> None:
    with pytest.raises(SystemExit):
        live.run(2, f"{THERE} --fail-if moves=5")
    complaint = live.capsys.readouterr().err
    assert '"moves=5": write violated, conflicts, unplaced, moves, staying, failures' in complaint


def test_what_goes_repairs_and_what_is_changed_breaks(serving: Starting) -> None:
    parted = replace(STATE, vms=tuple(replace(one, host="h2") if one.id == "b" else one for one in STATE.vms))
    with serving(parted) as live:
        for words, said in (
            ("remove near", "repairs affinity group near"),
            ("edit near --add-vm web3", "violates affinity group near, hard: together"),
        ):
            assert said in live.run(0, f"groups {words} --what-if")[0]
        assert live.changes == []


@pytest.mark.system
def test_keys_break_where_vms_run(starting: Starting) -> None:
    with starting(STATE) as live:
        live.run(0, "setup --cluster blue --placement-keys")
        live.run(0, "keys define SSD --cluster blue --values h2=0 --default 1")
        given = "keys set SSD 0 -200 --on server cache"
        (blue,) = live.data(0, f"{given} --what-if")["clusters"]
        assert [(rule["kind"], rule["vms"]) for rule in blue["violated"]] == [("placement_keys", ["c"])]
        assert [move["vms"] for move in blue["moves"]] == [["c"]]
        assert live.data(3, f"{given} --fail-if moves")["fails"] == ["moves>0 (1)"]
        assert len(live.data(0, "keys list --name SSD")["keys"]) == 3
        bad = live.data(0, "keys set SSD 1 0 --on server cache --what-if")
        assert "weight-zero" in bad["conflicts"][0]
        live.run(0, f"{given} --fail-if 'moves>1'")
        assert len(live.data(0, "keys list --name SSD")["keys"]) == 4


def test_keys_that_go_by_the_load_of_hosts_break_where_vms_run(serving: Starting) -> None:
    policy = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 1})
    state = replace(STATE, clusters=(replace(STATE.clusters[0], scheduling_policy=policy),))
    with serving(state) as live:
        (blue,) = live.data(0, "keys set '#LOAD' 0 -200 --on cluster blue --what-if")["clusters"]
    violated = (rule["vms"] for rule in blue["violated"] if rule["kind"] == "placement_keys")
    assert sorted(violated) == [["a"], ["b"], ["c"], ["d"]]


@pytest.mark.parametrize("words", ["x1 x2", "tag:web"])
def test_what_a_rule_costs_hangs_on_keys_however_it_names_vms(serving: Starting, words: str) -> None:
    """The only other host is refused by keys: nothing can be repaired."""
    policy = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 1})
    vms = (vm(name, "h1", cluster="c1", tags=("web",)) for name in ("x1", "x2"))
    hosts = (host(name, cluster="c1") for name in ("h1", "h2"))
    with serving(snapshot(cluster("c1", name="blue", scheduling_policy=policy), *hosts, *vms)) as live:
        live.run(0, "keys define PRIV --cluster blue --values h1=0 h2=1")
        live.run(0, "keys set PRIV 1 -200 --on cluster blue")
        added = f"rules add few --kind at_most_per_host --cluster blue --most 1 --vms {words} --force"
        (blue,) = live.data(0, f"{added} --what-if")["clusters"]
    assert (len(blue["violated"]), blue["moves"]) == (1, [])


def without_ids(policy: Policy) -> Policy:
    """Without what the engine adds to a policy when it is made."""
    if policy.external is None:
        return policy
    return dataclasses.replace(policy, external=replace(policy.external, engine_filters=(), unit_ids={}))


def test_setup_is_foreseen_as_it_comes(starting: Starting) -> None:
    with starting(STATE) as live:
        assert "Cluster blue:\n  violates no rule" in live.run(0, "setup --cluster blue --what-if")[0]
        assert live.changes == []
        live.run(2, "setup --undo --what-if")
        with connected(live.server.api_url) as connection:
            target = Target("ovirt-placement", ["c1"], factors={"SoftAffinityWeight": 30})
            foreseen = plan(connection, read_overview(connection), target)
            live.run(0, "setup --cluster blue --factor SoftAffinityWeight=30 --fail-if violated")
            (blue,) = read_snapshot(connection).clusters
        assert foreseen.clusters == ("c1",)
        assert foreseen.policy is not None
        assert without_ids(foreseen.policy) == without_ids(Policy(blue.policy, blue.scheduling_policy))
        assert blue.policy["vm_affinity_weight"] == 30


# -- `what-if` of a state file.
def test_hosts_that_fail_hosts_that_come_and_vms_that_start(asking: StateAsking) -> None:
    found = asking.data(0, "what-if --down h1,h2", STATE)
    starts = [(one["vm"], one["host"], one["former"]) for one in found["starts"]]
    assert (starts, found["stopped"]) == ([("a", "h3", "h1"), ("b", "h3", "h1")], ["c"])
    more = "what-if --add-host like=h1*2 --vm LIKE=cache*16 --fail-if unplaced"
    homes = Counter(one["host"] for one in asking.data(0, more, STATE)["starts"])
    assert homes == {"h1": 2, "h2": 3, "h3": 3, "h1+1": 4, "h1+2": 4}
    found = asking.data(3, "what-if --vm like=cache*9 --fail-if unplaced", STATE)
    assert found["fails"] == ["unplaced>0 (1)"]
    assert "the engine's Memory" in found["starts"][-1]["refused_by"]


def test_keys_that_refuse_every_host_are_not_repaired_by_a_maintenance(asking: StateAsking) -> None:
    policy = SchedulingPolicy(filters=("PlacementKeyFilter",))
    keys = (key("#RAM", 0, -200, "cluster", resource=CLUSTER),)
    state = snapshot(cluster(scheduling_policy=policy), host("h1"), host("h2"), vm("a", "h1"))
    found = asking.data(0, "what-if --maintenance h1", replace(state, placement_keys=keys))
    assert [one["vm"] for one in found["maintenance"][0]["staying"]] == ["a"]
    assert found["clusters"][0]["repaired"] == []


def test_copies_are_in_the_same_groups(asking: StateAsking) -> None:
    apart = replace(STATE, affinity_groups=(group("g", APART, "a d", cluster="c1"),))
    for copies, state, homes in (("web1", STATE, ["h1"]), ("web1*2", apart, ["h2", None])):
        found = asking.data(0, f"what-if --vm like={copies}", state)
        assert [one["host"] for one in found["starts"]] == homes


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "say what is to happen: --maintenance, --down, --add-host or --vm"),
        ("--down h11", 'no host "h11"'),
        ("--maintenance h1 --down h1", "h1 cannot both go into maintenance and fail"),
        ("--vm web1*20", "write like=NAME"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    asking: StateAsking, capsys: pytest.CaptureFixture[str], arguments: str, complaint: str
) -> None:
    said = ""
    with suppress(SystemExit):
        said = asking.run(2, f"what-if {arguments}", STATE)[1]
    assert complaint in said + capsys.readouterr().err


# -- `what-if --maintenance`: what it says comes true in an engine, and nothing is written by asking.
LEAVING = snapshot(
    cluster("c1", name="blue"),
    *(
        host(name, cluster="c1", name=f"node{name[1]}", memory_mb=32 * GIB, free_mb=free * GIB, cores=8)
        for name, free in (("h1", 20), ("h2", 28), ("h3", 24))
    ),
    *(
        vm(name, at, cluster="c1", name=f"web-{name}", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True)
        for name, at in (("a", "h1"), ("b", "h1"), ("c", "h2"), ("d", "h3"))
    ),
    group("near", TOGETHER, "a b", cluster="c1"),
    group("far", APART, "a d", cluster="c1"),
)


def test_what_cannot_leave_is_an_exit_status_with_what_its_hosts_say(asking: StateAsking) -> None:
    """Hosts that refuse it for one reason are reported together."""
    hosts = (host(name, cores=cores) for name, cores in (("h1", 8), ("h2", 1), ("h3", 1)))
    vms = vm("v1", "h1", vcpus=4), vm("v2", "h1", migratable=False)
    lines = asking.text(3, "what-if --maintenance h1 --fail-if staying", *hosts, *vms).splitlines()
    assert lines[0] == "Maintenance of h1 in cluster cluster1: 2 VMs cannot leave"
    assert "    - v1 to h2, h3: has fewer cores, 1, than VM v1 has CPUs" in lines
    assert "    - it may not be migrated automatically (pinned, or only its user may)" in lines
    assert lines[-1] == "--fail-if: staying>0 (2)"


@pytest.mark.parametrize(
    "coming",
    [(vm("v1", "h2", status="migrating", migrating_to="h1"),), (vm("v1"), pending("v1", "h1"))],
    ids=["migrates", "starts"],
)
def test_a_host_that_a_vm_is_on_its_way_to_does_not_become_empty(
    asking: StateAsking, coming: tuple[Part, ...]
) -> None:
    lines = asking.lines(3, "what-if --maintenance h1 --fail-if staying", host("h1"), host("h2"), *coming)
    first = "Maintenance of h1 in cluster cluster1: 1 VM cannot leave"
    assert lines[:3] == [first, "v1 cannot leave h1:", "- VM v1 is on its way there"]


def test_a_host_that_comes_has_the_memory_that_vms_on_their_way_take_of_its_like(asking: StateAsking) -> None:
    like = host("h1", memory_mb=8 * GIB, free_mb=0)
    big = vm("a", "h2", needs_mb=6 * GIB, status="migrating", migrating_to="h1")
    asked = "what-if --add-host like=h1 --vm like=a"
    (start,) = asking.data(0, asked, like, host("h2", free_mb=0), big)["starts"]
    assert start["host"] == "h1+1"


def test_hosts_fail_while_others_are_in_maintenance(asking: StateAsking) -> None:
    asked = "what-if --maintenance node3 --down node2 --fail-if unplaced"
    assert "web-d finds no host" in asking.text(3, asked, LEAVING)
    (blue,) = asking.data(0, "what-if --maintenance node2", LEAVING)["clusters"]
    assert blue["failures_now"] == {"count": 1, "exact": True}
    assert blue["failures_changed"] == {"count": 0, "exact": True}


# -- What a change violates is what was not violated before, whatever groups are tied together by then.
SPLIT = (
    *(host(name) for name in ("h1", "h2")),
    *(vm(name, at) for name, at in (("a", "h1"), ("b", "h2"), ("c", "h2"), ("d", "h2"), ("e", "h1"))),
)
FIRST, SECOND = group("g1", TOGETHER, "a b d"), group("g2", TOGETHER, "b c")
PAIR = group("g1", TOGETHER, "a b")


TIED = {
    "a group that is tied to it goes": ((FIRST, SECOND), (FIRST,), [], [], ["g1"]),
    "and then either may be the one that is off": ((PAIR, SECOND), (PAIR,), [], [], ["g1"]),
    "what splits it goes": ((FIRST, SECOND), (SECOND,), [], ["g1 g2"], []),
    "a satisfied group is tied to it": ((FIRST,), (FIRST, SECOND), [], [], ["g1 g2"]),
    "a violated one is": ((FIRST,), (FIRST, group("g2", TOGETHER, "a d")), ["g1 g2"], [], []),
    "one with one more": ((FIRST,), (FIRST, group("g2", TOGETHER, "b c e")), ["g1 g2"], [], []),
    "one of whose VMs others ask the contrary": (
        (group("g1", APART, "a b c e"),), (group("g1", TOGETHER, "a b c e"),), ["g1"], ["g1"], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "violated", "repaired", "as_before"), TIED.values(), ids=TIED)
def test_tied_groups_are_known_again(
    before: tuple[Part, ...],
    after: tuple[Part, ...],
    violated: list[str],
    repaired: list[str],
    as_before: list[str],
) -> None:
    found = difference(snapshot(*SPLIT, *before), snapshot(*SPLIT, *after), CLUSTER)
    lists = (found.violated, found.repaired, found.as_before)
    assert [[" ".join(one.groups) for one in some] for some in lists] == [violated, repaired, as_before]
