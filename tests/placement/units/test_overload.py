"""For how long hosts have been overloaded, over looks at some of them, by all that a process has seen."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_placement.units.decisions import Overload
from tests.builders import host, snapshot
from tests.clock import Clock

HOSTS = ("h1", "h2", "h3")
#: Seconds since the look before, the hosts that are asked about, and those that are busy.
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 600), st.sets(st.sampled_from(HOSTS), min_size=1), st.sets(st.sampled_from(HOSTS))
    ),
    min_size=2,
    max_size=6,
)


@given(LOOKS)
@example([(0, {"h1"}, {"h1"}), (60, {"h2"}, set()), (60, {"h1"}, {"h1"})])
def test_a_host_is_overloaded_since_the_first_look_at_it_that_showed_that(
    looks: list[tuple[int, set[str], set[str]]],
) -> None:
    """Until a look shows the contrary: one that is not asked about meanwhile stays as it was."""
    clock = Clock(1000.0)
    overload = Overload(clock)
    since: dict[str, float] = {}
    for number, (seconds, asked, busy) in enumerate(looks):
        clock.now += seconds
        state = snapshot(*(host(name, cpu_percent=95 if name in busy else 5) for name in HOSTS))
        found = overload.minutes(state, tuple(sorted(asked)), {})
        for name in asked:
            if name not in busy:
                since.pop(name, None)
            else:
                since.setdefault(name, clock.now if number else -inf)
        expected = {name: (clock.now - since[name]) / 60 for name in asked & busy}
        assert found == pytest.approx(expected)
