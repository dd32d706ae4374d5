"""What contradicts what is found again only when something has changed that it hangs on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.conflicts import judge_rules, sentence
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.solver import contradictions
from tests.builders import APART, CLUSTER, group, host, pending, rule, snapshot, vm

STATE = snapshot(
    host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("apart", APART, "a b"),
    rule("off", "exclusive_hosts", "x", hosts="h2"),
)  # fmt: skip
CLASH = "affinity group apart, placement rule off cannot be satisfied together"


@pytest.fixture
def judgements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that the solver is asked."""
    asked: list[str] = []
    judge = contradictions.judge

    def counted(state: Snapshot, cluster: str, *rest: object) -> object:
        asked.append(cluster)
        return judge(state, cluster, *rest)

    monkeypatch.setattr(contradictions, "judge", counted)
    return asked


def found(state: Snapshot) -> list[str]:
    return [sentence(one) for one in judge_rules(state, CLUSTER).contradictions]


def test_vms_that_move_and_hosts_that_fail_are_no_reason_to_ask_again(judgements: list[str]) -> None:
    state = replace(STATE, vms=(*STATE.vms, vm("only here")))
    assert found(state) == [CLASH]
    moved = tuple(replace(one, host="h1", status="up", usage_cpu_percent=90) for one in state.vms)
    down = tuple(replace(one, status="maintenance", free_mb=1, cpu_percent=99) for one in state.hosts)
    assert found(replace(state, vms=moved, hosts=down, draining_hosts=("h1",))) == [CLASH]
    assert found(replace(state, pending=(pending("a", "h2"),))) == [CLASH]
    assert len(judgements) == 1


def test_another_rule_host_member_or_name_is(judgements: list[str]) -> None:
    assert found(STATE) == [CLASH]
    assert found(replace(STATE, hosts=(*STATE.hosts, host("h3")))) == []
    assert found(replace(STATE, affinity_groups=(replace(STATE.affinity_groups[0], name="far"),))) == [
        CLASH.replace("group apart", "group far")
    ]
    assert found(replace(STATE, affinity_groups=())) == []
    assert found(replace(STATE, placement_rules=())) == []
    pinned = tuple(replace(one, migratable=False, pinned_hosts=("h2",)) for one in STATE.vms)
    assert found(replace(STATE, vms=pinned, affinity_groups=())) == ["placement rule off cannot be satisfied"]
    assert found(STATE) == [CLASH]
