"""Stories of a cluster and its enforcer, each played to its end and compared with what is expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import play

SCENARIOS = sorted(path.parent for path in Path(__file__).parent.glob("*/story.toml"))
#: Which groups a loop needs is looked for as long as the daemon's time for it lasts, which is real.
IN_REAL_TIME = {"engine-moves-a-vm-to-and-fro"}


def _param(scenario: Path) -> Any:
    marks = [pytest.mark.timing] if scenario.name in IN_REAL_TIME else []
    return pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.mark.parametrize("scenario", map(_param, SCENARIOS))
def test_decides_as_expected(scenario: Path, tmp_path: Path) -> None:
    assert play(scenario, tmp_path) == (scenario / "decisions.log").read_text().splitlines()
