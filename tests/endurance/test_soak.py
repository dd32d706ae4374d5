"""The soak shows right answers from wrong ones; a short one has none while workers are killed."""

import random
from pathlib import Path

import pytest

from tests.endurance.soak import BALANCE, FILTERS, KNOWN_UNITS, WEIGHTS, ask, soak, verdict
from tests.proxy.running import running, write_plugins

#: In place of the real units: what holds for any of their answers holds for these.
_REAL_UNITS = "\n".join(
    [
        *(f"class {name}:\n    def do_filter(self, hosts, vm, args): return hosts[1:]" for name in FILTERS),
        *(f"class {name}:\n    def do_score(self, hosts, vm, args): return []" for name in WEIGHTS),
        f"class {BALANCE}:\n    def do_balance(self, hosts, args): return None",
    ]
)
_CALLS = 40


@pytest.mark.parametrize(
    ("right", "spoilt"), [("", ""), ("% 4]", "% 5]"), ("% 1000)", "% 999)"), ("hosts[:2]", "hosts[:1]")]
)
def test_a_wrong_answer_is_noticed(right: str, spoilt: str, tmp_path: Path) -> None:
    assert right in KNOWN_UNITS
    known = KNOWN_UNITS.replace(right, spoilt) if right else KNOWN_UNITS
    plugins = write_plugins(tmp_path, known=known, real=_REAL_UNITS)
    hosts, chance = [f"h{number}" for number in range(9)], random.Random(1)
    with running(plugins) as proxy, proxy.client() as client:
        heard = [ask(client, chance, hosts, f"v{number}") for number in range(_CALLS)]
    assert not any(one.failed for one in heard)
    assert any(one.wrong for one in heard) == bool(spoilt)


def test_units_that_fail_are_no_wrong_answer(tmp_path: Path) -> None:
    chance = random.Random(1)
    with running(write_plugins(tmp_path, known=KNOWN_UNITS)) as proxy, proxy.client() as client:
        heard = [ask(client, chance, ["h1", "h2"], "v") for _ in range(_CALLS)]
    assert any(one.failed for one in heard)
    assert [one.wrong for one in heard if one.wrong] == []


@pytest.mark.nightly
def test_no_call_is_lost_in_a_short_soak() -> None:
    windows = list(soak(calls=3000, windows=3, kill_seconds=0.5))
    assert windows[-1].calls == 3000
    assert sum(len(window.tally.times) for window in windows) >= 3000
    assert verdict(windows) == []
