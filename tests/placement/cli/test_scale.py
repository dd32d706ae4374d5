"""At 500 hosts an answer is what a person reads, and `--all` or a filter gives the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.placement.cli.documents import plain
from tests.placement.cli.state_asking import StateAsking
from tests.placement.rules.placement_keys.nodes import keyed

Ask = Callable[..., str]

HOSTS = 100
#: Groups of two VMs: of the first three each stands on one host and should not.
GROUPS = 40


STATE = snapshot(
    *(host(f"h{n}", status="maintenance" if n in (7, 8) else "up") for n in range(HOSTS)),
    *(vm(f"v{n}{half}", f"h{n if half == 'a' or n < 3 else n + 1}") for n in range(GROUPS) for half in "ab"),
    *(vm(f"x{n}") for n in range(30)),
    *(group(f"g{n}", APART, f"v{n}a v{n}b") for n in range(GROUPS)),
    group("large", TOGETHER, " ".join(f"x{n}" for n in range(30))),
)


@pytest.fixture
def ask(asking: StateAsking) -> Ask:
    return lambda *words, status=0: asking.run(status, " ".join(words), STATE)[0]


def test_why_reports_the_refusals_and_counts_the_rest(ask: Ask) -> None:
    lines = ask("why", "v0a").splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["h0", "h7"]  # its rival is on h0
    assert len(lines) < 10
    assert lines[-1].startswith("97 of 100 hosts may take VM v0a: h1, h2, h3,")
    assert lines[-1].endswith("and 89 more (--all lists all)")
    assert len(ask("why", "v0a", "--all").splitlines()) > HOSTS


def test_where_shows_the_best_and_counts_the_rest(ask: Ask) -> None:
    lines = ask("where", "v0a").splitlines()
    assert "... and 77 more rows: --all shows them" in lines
    assert len(ask("where", "v0a", "--all").splitlines()) > HOSTS - 3


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
    assert [each["id"] if isinstance(each, dict) else each for each in groups] == found


def test_a_long_list_of_members_is_cut(ask: Ask) -> None:
    shown = ask("groups", "list", "--group", "large")
    assert "and 23 more" in shown
    assert len(shown.splitlines()) == 10
    assert "x29" in ask("groups", "list", "--group", "large", "--all")


def test_violations_are_narrowed(ask: Ask) -> None:
    def groups(*arguments: str, status: int = 1) -> list[list[str]]:
        reported = plain(ask("violations", "--json", *arguments, status=status))["violations"]
        return [each["groups"] for each in reported]

    assert groups() == [["g0"], ["g1"], ["g2"]]
    assert groups("--vm", "v1b") == groups("--host", "h1") == groups("--group", "g1") == [["g1"]]
    assert groups("--vm", "v9a", status=0) == []
    ask("violations", "--vm", "v999", status=2)


def test_keys_explain_names_no_more_hosts_than_one_reads(asking: StateAsking) -> None:
    lines = asking.lines(0, "keys explain v1", keyed(*(host(f"h{n}") for n in range(HOSTS)), vm("v1")))
    assert lines[-1] == (
        "Round 10 (above -10): h0 or h1 or h2 or h3 or h4 or h5 or h6 or h7 and 92 more, by lot."
    )
    assert len(lines) < 30
