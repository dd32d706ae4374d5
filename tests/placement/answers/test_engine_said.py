"""What the engine says of hosts that its filters refused: it may name one of them for all."""

from __future__ import annotations

from ovirt_placement.answers.decisions.at_time import EngineSaid, names_one_for_all, said_of_host
from tests.builders import host

_BEGINS = (
    "Failed to run VM q3: [Cannot run VM. There is no host that satisfies current scheduling constraints."
    " See below for details:"
)
_AFFINITY = (
    "The host {} did not satisfy internal filter VmToHostsAffinityGroups because it did not match positive"
    " affinity rules ."
)
_OTHER = "The host {} did not satisfy internal filter VmAffinityGroups because it matched negative rules ."


def said(*parts: str) -> EngineSaid:
    return EngineSaid("2026-11-28T07:00:00Z", 54, True, ", ".join((_BEGINS, *parts)) + "]")


def test_what_is_said_of_one_is_shown_with_it() -> None:
    event = said(_AFFINITY.format("h1"), _OTHER.format("h2"))
    assert said_of_host([event], host("h2")) == _OTHER.format("h2")
    assert not names_one_for_all(event.sentence)


def test_what_is_said_of_all_under_the_name_of_one_is_shown_with_none() -> None:
    """As an engine 4.5.8 said of six hosts, of which the named one was refused by another filter."""
    event = said(*[_AFFINITY.format("h4")] * 6)
    assert names_one_for_all(event.sentence)
    assert all(said_of_host([event], host(name)) is None for name in ("h1", "h4"))
