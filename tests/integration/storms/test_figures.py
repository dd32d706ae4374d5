"""What storms are judged by: torn chains, violated groups, failed calls; and that all starts are lawful."""

from __future__ import annotations

import pytest

from tests.integration.storms.clients import Answer, Burst
from tests.integration.storms.cluster import draw
from tests.integration.storms.figures import Figures, calls_of, run_alone

STORM = draw(40)


def placed(**elsewhere: str) -> dict[str, str | None]:
    """All of the storm on hosts of their own where they must be apart, else on one."""
    hosts: dict[str, str | None] = dict.fromkeys((vm.id for vm in STORM.state.vms), "h0")
    for group in STORM.apart:
        hosts.update({vm: f"h{number}" for number, vm in enumerate(group)})
    return hosts | elsewhere


@pytest.mark.system
def test_the_engine_alone_starts_all_of_a_storm_and_breaks_no_group() -> None:
    found = run_alone(draw(24), threads=20)
    assert [answer.status for answer in found.burst.answers] == [200] * 24
    assert None not in {found.hosts[vm] for vm in found.storm.starts}
    assert found.violated == 0


def test_a_storm_has_as_many_starts_as_it_shall_and_the_links_of_chains_stay_down() -> None:
    assert len(set(STORM.starts)) == len(STORM.starts) == 40
    assert len(STORM.state.vms) == 40 + sum(2 * (len(chain) - 1) for chain in STORM.chains)
    assert all(vm.host is None for vm in STORM.state.vms)


def test_a_chain_on_two_hosts_is_torn_and_no_violated_group() -> None:
    one = STORM.chains[0][0]
    found = Figures(STORM, Burst((), 0.0), placed(**{one: "h1"}))
    assert found.torn_chains == (2,)
    assert found.violated == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_groups_are_violated_that_stand_apart_or_together_against_their_rule(count: int) -> None:
    wrong = [(STORM.together[0][0], "h9"), (STORM.apart[0][1], "h0")][:count]
    found = Figures(STORM, Burst((), 0.0), placed(**dict(wrong)))
    assert found.violated == count
    assert found.torn_chains == ()


def test_a_vm_that_runs_nowhere_breaks_nothing() -> None:
    hosts = placed() | {STORM.together[0][0]: None, STORM.chains[0][0]: None}
    found = Figures(STORM, Burst((), 0.0), hosts)
    assert (found.torn_chains, found.violated) == ((), 0)


def test_only_answers_of_the_engine_are_refusals() -> None:
    burst = Burst((Answer("a", 200), Answer("b", 400), Answer("c", None)), 1.0)
    assert [answer.vm for answer in burst.refused] == ["b"]
    assert burst.lost == ("c",)


def test_calls_fail_by_their_units_but_for_refusals() -> None:
    failures = [{}, {"A": "refused"}, {"A": "overran", "B": "cut_off"}, {"B": "cut_off"}]
    records = [{"failures": each, "seconds": float(number)} for number, each in enumerate(failures, 1)]
    found = calls_of(records)
    assert found.failed == 2
    assert found.causes == {"overran": 1, "cut_off": 2}
    assert [found.percentile(percent) for percent in (25, 50, 99, 100)] == [1.0, 2.0, 4.0, 4.0]
