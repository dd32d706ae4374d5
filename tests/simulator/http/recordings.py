"""Where the recording of a real engine stands."""

from __future__ import annotations

from pathlib import Path

SMALL = Path(__file__).resolve().parents[2] / "data" / "recordings" / "small-4.2"
