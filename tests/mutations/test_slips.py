"""Each slip stands where it says: one whose text has changed would notice nothing any more."""

import pytest

from tests.mutations.__main__ import Slip, read_slips
from tests.paths import CHECKOUT


@pytest.mark.parametrize("slip", [slip for _, slip in read_slips()], ids=lambda slip: slip.why)
def test_the_text_of_a_slip_stands_once(slip: Slip) -> None:
    assert slip.file(CHECKOUT).is_file()
