"""Where the recording of a real engine stands."""

from __future__ import annotations

from tests.paths import RECORDING

SMALL = RECORDING
