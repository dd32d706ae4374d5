"""The feed of events, and records of which the newest reading stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.on_demand import Span
from ovirt_placement.inventory.service.events import LATEST_SECONDS, Feed, FeedInterrupted
from ovirt_placement.inventory.service.view import Table
from tests.placement.inventory.stage import event


def page_of(log: dict[int, float], feed: Feed | None, now: float) -> tuple[EngineEvent, ...]:
    """What an engine with these events (when each id shows) answers: the newest after an id, oldest first."""
    after = 0 if feed is None else feed.after
    shown = sorted(number for number, shows in log.items() if shows <= now and number > after)
    return tuple(event(number, time=float(number)) for number in shown[-1000:])


@given(
    delays=st.lists(st.tuples(st.floats(0, 3), st.floats(0, LATEST_SECONDS - 0.1)), max_size=40),
    polls=st.lists(st.floats(0.05, 8), min_size=1, max_size=40),
    before=st.integers(0, 5),
)
def test_each_event_is_given_once_however_late_it_shows(
    delays: list[tuple[float, float]], polls: list[float], before: int
) -> None:
    now = 100.0
    log = {number + 1: 0.0 for number in range(before)}
    moment = now
    for pause, late in delays:
        moment += pause
        log[len(log) + 1] = moment + late
    feed = Feed(page_of(log, None, now), now)
    shown_at_first = {number for number, shows in log.items() if shows <= now}
    given_out: list[int] = []
    for pause in [*polls, 1000.0]:
        # An event may show until its successors are `LATEST_SECONDS` old: polls in between are many enough.
        while pause > 0:
            step = min(pause, LATEST_SECONDS / 2)
            now, pause = now + step, pause - step
            page = [one for one in page_of(log, feed, now) if one.id not in feed.known]
            new = [one.id for one in feed.read_page(page, now)]
            assert new == sorted(new)
            given_out += new
    assert sorted(given_out) == sorted(set(log) - shown_at_first)


def test_at_rest_the_last_event_is_all_that_is_asked() -> None:
    log = dict.fromkeys(range(1, 500), 0.0)
    feed = Feed(page_of(log, None, 0.0), 0.0)
    assert feed.read_page(page_of(log, feed, 1.0), 1.0) == ()
    assert len(page_of(log, feed, 1.0)) <= LATEST_SECONDS + 1  # one event a second, by the engine's clock
    feed.read_page(page_of(log, feed, 10.0), 10.0)
    assert [one.id for one in page_of(log, feed, 10.0)] == [499]


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (range(1, 20), 30),  # restored from a backup: ids jumped back
        ((), 30),
        (range(4000, 5000), 30),  # more happened than a page holds
        (range(1, 100), 1),  # another event with the same id
    ],
    ids=["jumped back", "empty", "too much", "another"],
)
def test_a_log_that_does_not_go_on_is_reported(ids: Sequence[int], code: int) -> None:
    feed = Feed(page_of(dict.fromkeys(range(1, 100), 0.0), None, 0.0), 0.0)
    with pytest.raises(FeedInterrupted):
        feed.read_page(tuple(event(one, code, time=float(one)) for one in ids if one > feed.after), 1.0)


@pytest.mark.parametrize(
    ("page", "same"),
    [
        ([98, 99, 100], True),
        ([3000, 3001], True),  # after a gap
        ([97, 99], True),  # a user has dismissed one
        ([1, 2], False),
        ([], False),
    ],
)
def test_a_log_is_another_one_if_it_is_not_so_long(page: list[int], same: bool) -> None:
    feed = Feed(page_of(dict.fromkeys(range(1, 100), 0.0), None, 0.0), 0.0)
    assert feed.is_continued_by(tuple(event(one, time=float(one)) for one in page)) is same
    assert not feed.is_continued_by((event(99, code=1, time=99.0), event(4000)))


def test_an_empty_log_begins() -> None:
    feed = Feed((), 0.0)
    assert [one.id for one in feed.read_page((event(2),), 1.0)] == [2]
    assert [one.id for one in feed.read_page((event(1), event(2)), 2.0)] == [1]


ID = "v"
MOMENTS = st.integers(0, 30)


@dataclass(frozen=True)
class Read:
    """One reading: what it found was so at a moment between its beginning and its end."""

    began: int
    sampled: int
    ended: int
    #: Whether it was of all records.
    whole: bool

    @property
    def span(self) -> Span:
        return Span(self.began, self.ended)

    @property
    def found(self) -> int | None:
        """The engine's record of a moment is that moment; at every third it has none."""
        return None if self.sampled % 3 == 0 else self.sampled


def one_after_another(history: list[Read]) -> bool:
    """Whether the readings of all are: one loop makes them."""
    wholes = [read for read in history if read.whole]
    return all(before.ended <= after.began for before, after in pairwise(wholes))


#: In the order in which they end, which is the one in which they are taken in.
reads = (
    st.lists(
        st.tuples(st.lists(MOMENTS, min_size=3, max_size=3).map(sorted), st.booleans()).map(
            lambda drawn: Read(*drawn[0], drawn[1])
        ),
        min_size=1,
        max_size=12,
    )
    .map(lambda drawn: sorted(drawn, key=lambda read: read.ended))
    .filter(one_after_another)
)


@dataclass
class Taken:
    """A table that has taken readings, and the one that it shows."""

    table: Table[int] = field(default_factory=Table)
    shown: Read | None = None
    #: Since when the record is to be read again.
    due: int | None = None

    def take(self, read: Read) -> bool:
        """Take a reading; whether the table shows it."""
        before = self.table.records.get(ID)
        if read.whole:
            again = self.table.put_all({} if read.found is None else {ID: read.found}, read.span) != ()
            accepted = self.shown is None or self.shown.began <= read.began
        else:
            accepted = self.table.put(ID, read.found, read.span)
            again = not accepted
        assert self.table.records.get(ID) == (read.found if accepted else before)
        if again:
            self.due = read.ended
        elif self.due is not None and read.began >= self.due:
            self.due = None
        if accepted:
            self.shown = read
        return accepted


@given(reads)
def test_a_record_that_is_read_by_itself_never_makes_the_known_one_older(history: list[Read]) -> None:
    taken = Taken()
    for read in history:
        before = taken.shown
        if taken.take(read) and before is not None and not read.whole:
            assert read.sampled >= before.sampled


@given(reads)
def test_where_a_newer_state_was_found_than_is_shown_the_record_is_to_be_read_again(
    history: list[Read],
) -> None:
    taken = Taken()
    for number, read in enumerate(history):
        taken.take(read)
        newest = max(found.sampled for found in history[: number + 1])
        assert taken.shown is not None
        assert taken.shown.sampled >= newest or taken.due is not None


@given(reads, st.booleans())
def test_a_reading_that_begins_after_all_others_have_ended_is_taken(history: list[Read], whole: bool) -> None:
    taken = Taken()
    for read in history:
        taken.take(read)
    assert taken.take(Read(31, 32, 33, whole))
    assert taken.table.records == {ID: 32}
    assert taken.due is None
