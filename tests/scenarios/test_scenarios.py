"""Stories of a cluster and its enforcer, each played to its end and compared with what is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.stage import play

SCENARIOS = sorted(path.parent for path in Path(__file__).parent.glob("*/story.toml"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_decides_as_expected(scenario: Path, tmp_path: Path) -> None:
    assert play(scenario, tmp_path) == (scenario / "decisions.log").read_text().splitlines()
