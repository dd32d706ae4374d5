"""Stories of a cluster and its enforcer, each played to its end and compared with what is expected."""

from pathlib import Path

import pytest

from tests.scenarios.stage import play

SCENARIOS = sorted(path.parent for path in Path(__file__).parent.glob("*/story.toml"))
#: Short ones, of which no two show the same; the others are long, or differ by one setting from one of these.
QUICK = {
    "closure", "colliding-negative-pair", "engine-is-away",
    "excluded-host", "headroom-is-given-up-for-a-hard-rule", "legacy-label",
    "licensed-hosts", "only-observed", "pinned-member",
    "refused-then-the-next-host", "split-positive-group",
    "two-racks",
}  # fmt: skip


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, id=scenario.name, marks=() if scenario.name in QUICK else pytest.mark.system)
        for scenario in SCENARIOS
    ],
)
def test_decides_as_expected(scenario: Path, tmp_path: Path) -> None:
    assert play(scenario, tmp_path) == (scenario / "decisions.log").read_text().splitlines()
