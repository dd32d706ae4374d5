"""What is known of searches: the last answer, also while the engine refuses to give another."""

from __future__ import annotations

from ovirt_placement.inventory.on_demand import KnownSearches, searches_of
from ovirt_placement.model import MemberSearch
from tests.builders import rule

WANTED = frozenset({("vms", "name=a*"), ("hosts", "name=h*")})


def answer(found: tuple[str, ...] | None, problem: str = "") -> MemberSearch:
    return MemberSearch(of="vms", text="name=a*", found=found, problem=problem)


def test_searches_are_those_that_rules_name() -> None:
    two = (
        rule("a", "separate", "search:name=a*", other_vms="x search:name=a*", hosts="search:name=h*"),
        rule("b", "spread", "tag:x"),
    )
    assert searches_of(two) == WANTED


def test_whom_it_found_counts_while_the_engine_refuses_it() -> None:
    known = KnownSearches()
    known.want(WANTED)
    known.put([answer(None, "refused")])
    assert known.found == (answer(None, "refused"),)
    known.put([answer(("v1",))])
    assert known.found == (answer(("v1",)),)
    known.put([answer(None, "refused")])
    (kept,) = known.found
    assert kept.found == ("v1",)
    assert kept.problem.startswith("refused; whom it found at 2")
    known.put([answer(None, "refused")])
    assert known.found[0] is kept or known.found == (kept,)
    known.put([answer(())])
    assert known.found == (answer(()),)


def test_what_nobody_wants_is_forgotten() -> None:
    known = KnownSearches()
    known.want(WANTED)
    known.put([answer(("v1",))])
    known.want(frozenset())
    assert known.found == ()
    known.put([answer(("v1",))])  # asked before it was forgotten
    assert known.found == ()
