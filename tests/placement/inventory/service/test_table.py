"""Readings of a record that overlap: what is known does not grow older, or the record is read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.inventory.on_demand import Span
from ovirt_placement.inventory.service.view import Table

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
