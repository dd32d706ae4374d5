"""What of a file of affinity groups the engine keeps as it stands, and what it does not."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ovirt_placement.model.group_file import stored_priority, stored_text
from ovirt_service.errors import UserError


@given(st.floats(-1e9, 1e9))
def test_a_priority_is_rounded_as_the_engine_does_and_then_stays(priority: float) -> None:
    steps = Decimal(priority * 1e7)
    rounded = (steps + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
    stored = stored_priority(priority)
    if abs(priority) < 1e8:  # beyond, what comes back may be rounded once more
        assert stored == int(rounded) / 1e7
    assert stored_priority(stored) == stored


@given(st.text(st.characters(), max_size=20))
def test_a_text_comes_back_from_xml_as_it_is_stored_or_is_refused(text: str) -> None:
    element = etree.Element("description")
    try:
        stored = stored_text(text)
    except UserError:
        try:
            element.text = text
        except (ValueError, TypeError):
            return
        raise AssertionError("XML can hold it") from None
    element.text = stored
    assert (etree.fromstring(etree.tostring(element)).text or "") == stored
    assert stored_text(stored) == stored
