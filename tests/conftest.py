"""Settings for all tests: properties judge answers, not the speed of a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.load_profile("default")
