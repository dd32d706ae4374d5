"""What the first screen says will happen next, and why nothing newer is known."""

from types import SimpleNamespace
from typing import Any

import pytest

from ovirt_placement.answers.placement import why
from ovirt_placement.answers.status.clusters import cluster_status
from ovirt_placement.model import Cluster, SchedulingPolicy
from ovirt_placement_web.bounds import unfound
from ovirt_placement_web.site import environment, error_text, page_words, timed
from ovirt_placement_web.views.needs import Standing, is_ill, refusals
from ovirt_placement_web.views.needs import _hosts as hosts
from ovirt_placement_web.views.vm import _state as vm_state
from ovirt_service.errors import UserError
from tests.builders import APART, CLUSTER, cluster, group, host, snapshot, vm

ENFORCER = SimpleNamespace(error=None, acts=True, leader="here", mode="enforce", breakers=())
NUMBERS = SimpleNamespace(
    cluster=SimpleNamespace(id="c1"),
    doubt="",
    upgrade=None,
    lost=(),
    ha_reservation=True,
    ha_safe=True,
    hard_violations=0,
    soft_violations=0,
)
PLAN = SimpleNamespace(runs=False, steps=((1, {}, None),), record=SimpleNamespace(document={"seconds": 30}))
LOST = SimpleNamespace(host_status="non_responsive")
UI: Any = environment().get_template("ui.html").module
SAY: Any = environment().get_template("needs.html").module
HOST = environment().from_string(
    "{% import 'needs.html' as say %}"
    "{% macro show(need, title, action='', address='') %}{{ caller() }}{% endmacro %}"
    "{{ say.host(need, show) }}"
)


def changed(one: SimpleNamespace, **values: Any) -> Any:
    return SimpleNamespace(**{**vars(one), **values})


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (cluster(), ("Healthy", "success")),
        (cluster(scheduling_policy=SchedulingPolicy(disabled=("AffinityFilter",))), ("Unhealthy", "danger")),
    ],
)
def test_a_cluster_is_called_healthy_only_by_its_health(of: Cluster, said: tuple[str, str]) -> None:
    status = cluster_status(snapshot(of, host("h1")), of.id)
    assert UI.condition(status, lambda text, tone: f"{text} {tone}") == " ".join(said)


@pytest.mark.parametrize(
    ("error", "enforcer", "numbers", "known", "said"),
    [
        (None, {}, {}, {}, "Nothing: there is nothing to repair."),
        (None, {}, {"hard_violations": 1}, {}, "plans the repair, and carries it out"),
        (None, {"mode": "approve"}, {"hard_violations": 1}, {}, "then waits for approval"),
        (
            None,
            {},
            {"hard_violations": 1},
            {"plan": PLAN},
            "Nothing before approval; then 1 step in about 30 s",
        ),
        (None, {}, {"hard_violations": 1}, {"refusal": object()}, "the plan was refused"),
        (None, {}, {"hard_violations": 1}, {"pause": object()}, "until the pause ends"),
        (None, {}, {"soft_violations": 1}, {}, "no plan repairs the violated soft rules"),
        (
            None,
            {},
            {"lost": (LOST,)},
            {},
            "The engine restarts 1 highly available VM once its host is fenced",
        ),
        (None, {}, {"ha_safe": False}, {}, "Nothing by itself"),
        (None, {}, {"doubt": "no statistics"}, {}, "until there is a verdict"),
        (None, {"acts": False}, {"hard_violations": 1}, {}, "mode observe"),
        (None, {"leader": None}, {"hard_violations": 1}, {}, "no enforcer runs"),
        ("away", {}, {"hard_violations": 1}, {"plan": PLAN}, "until the engine answers"),
    ],
)
def test_what_happens_next_is_said(
    error: str | None, enforcer: dict[str, Any], numbers: dict[str, Any], known: dict[str, Any], said: str
) -> None:
    standing = Standing(changed(NUMBERS, **numbers), changed(ENFORCER, **enforcer), *[None] * 4)._replace(
        **known
    )
    assert said in SAY.what_next(SimpleNamespace(error=error), standing)


def test_an_error_is_said_without_what_the_page_says_itself() -> None:
    said = "no fresh snapshot: https://e: the engine does not answer: refused; the last one is 16 s old"
    assert error_text(said) == "Refused."
    assert error_text("no snapshot: nothing was read yet") == "Nothing was read yet."
    assert error_text(None) == ""


def test_the_page_names_no_commands() -> None:
    said = "  - while it is out, vm-2 would not restart (1 of 2; see ovirt-placement ha-check)"
    assert page_words(said) == "while it is out, vm-2 would not restart (1 of 2)"
    assert page_words("cluster c1: db-2 is down (ovirt-placement why db-2)") == "Cluster c1: db-2 is down"
    assert page_words("c1: db-1 is not known to run; h1 is non_responsive") == (
        "C1: db-1 is not known to run; h1 does not respond"
    )
    assert page_words("With --stop vm-1, there is a round") == "With vm-1 stopped, there is a round"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('no VM "db-3"; did you mean "db-1"?', 'There is no VM "db-3"; did you mean "db-1"?'),
        ('VM "web" is ambiguous: say v1 or v2', 'VM "web" is ambiguous: say v1 or v2.'),
        ("the plan does not wait any more.", "The plan does not wait any more."),
    ],
)
def test_what_a_command_says_of_a_mistake_is_a_sentence(error: str, said: str) -> None:
    assert unfound(UserError(error)) == said


def test_names_keep_their_letters() -> None:
    """Lists say reasons, which may begin with a name: it is typed as it stands."""
    assert page_words("  - v3 stays where it is: its status is paused") == (
        "v3 stays where it is: its status is paused"
    )


def test_a_host_that_rests_is_named_where_vms_of_it_are_not_known_to_run() -> None:
    """Highly available ones: else its administrator knows."""
    reboots, rests = host("h1", status="reboot"), host("h2", status="maintenance")
    state = snapshot(cluster(), reboots, rests, vm("a", "h1", ha=True, status="unknown"), vm("b", "h1"))
    asked: Any = SimpleNamespace(snapshot=state)
    ((_, tone, kind, about),) = hosts(asked, cluster_status(state, CLUSTER))
    assert (tone, kind, about[:2]) == ("danger", "host", (reboots, 2))
    assert [one.vm.name for one in about[2]] == ["a"]
    assert SAY.fails(reboots) == "is rebooting"


@pytest.mark.parametrize(
    ("host_status", "status", "ill"),
    [
        *(("up", "up", False), ("up", "paused", False), ("up", "not_responding", True)),
        *(("preparing_for_maintenance", "up", False), ("non_operational", "up", False)),
        *(("up", "unknown", True), ("connecting", "up", True), ("error", "paused", True)),
    ],
)
def test_a_vm_is_not_said_to_run_where_its_host_does_not_answer(
    host_status: str, status: str, ill: bool
) -> None:
    state = snapshot(cluster(), host("h1", status=host_status), host("h2"), vm("a", "h1", status=status))
    judged = why(state, state.vms[0], state.hosts)
    assert is_ill(state, state.vms[0]) is ill
    assert (vm_state(state.vms[0], judged, state, accepted=1) == "ill") is ill


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        ((True, False), "No host takes b."),
        ((True, None), "It is not known whether other hosts take them."),
        ((None,), "It is not known whether other hosts take it."),
        ((True, True), "Other hosts have room for them."),
    ],
)
def test_room_for_vms_of_a_failed_host_is_promised_only_where_it_is_known(
    fates: tuple[bool | None, ...], said: str
) -> None:
    names = (SimpleNamespace(name=name) for name in "ab")
    lost = [SimpleNamespace(vm=vm, could_start=fate) for vm, fate in zip(names, fates, strict=False)]
    need = SimpleNamespace(about=(SimpleNamespace(id="h1", name="h1", status="non_responsive"), 9, lost))
    assert said in HOST.render(need=need)


def test_moments_in_a_line_are_those_of_the_reader() -> None:
    moment = '<time datetime="2026-11-29T02:36:53+00:00">2026-11-29 02:36:53 UTC</time>'
    assert timed("waits since 2026-11-29 02:36:53 UTC: <b>") == f"waits since {moment}: &lt;b&gt;"


def test_what_refuses_most_hosts_comes_first() -> None:
    state = snapshot(
        cluster(),
        *(host(name) for name in ("h1", "h2", "h3")),
        *(vm(name, on) for name, on in (("a", "h1"), ("b", "h2"), ("c", "h3"), ("d", None))),
        group("g1", APART, "a d"),
        group("g2", APART, "b c d"),
    )
    judged = why(state, state.vm_by_id["d"], state.hosts).hosts
    assert [one.partition(":")[0] for one in refusals(judged)] == [
        "Affinity group g2 refuses h2, h3",
        "Affinity group g1 refuses h1",
    ]


def test_a_host_is_red_only_for_a_hard_rule_that_its_vms_violate() -> None:
    table = environment().get_template("parts.html").make_module().hosts_table
    for strengths, shown in (
        (["soft"], ("warning", "1 VM violates a rule")),
        (["soft", "hard"], ("danger", "2 VMs violate rules")),
    ):
        text = str(table("", [host("h1")], {}, {"h1": strengths}))
        assert shown[1] in text
        assert [kind for kind in ("danger", "warning") if f"pf-m-{kind}" in text] == [shown[0]]
