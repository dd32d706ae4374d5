"""The soak in short: it runs, and every answer is right while workers are killed and VMs move."""

from __future__ import annotations

import pytest

from tools.soak.__main__ import soak
from tools.soak.windows import verdict


@pytest.mark.nightly
def test_no_call_is_lost_in_a_short_soak() -> None:
    windows = list(soak(calls=3000, windows=3, kill_seconds=0.5))
    assert windows[-1].calls == 3000
    assert sum(len(window.tally.times) for window in windows) >= 3000
    assert verdict(windows) == []
