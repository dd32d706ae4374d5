"""A mistake in the enforcer's section is reported in one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_enforcer.windows import Window
from ovirt_placement import config
from ovirt_service.errors import UserError

WORDS = "one of observe, approve, enforce"


def read(folder: Path, text: str) -> EnforcerSettings:
    file = folder / "placement.toml"
    file.write_text(f"[enforcer]\n{text}\n", "utf-8")
    return config.load(file, {}).section("enforcer", EnforcerSettings)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('mode = "enforced"', f'mode: cannot be "enforced"; {WORDS}; did you mean "enforce"?'),
        (
            'clusters = { a = "observed" }',
            f'clusters[...]: cannot be "observed"; {WORDS}; did you mean "observe"?',
        ),
        ('groups = { a = "off" }', f'groups[...]: cannot be "off"; {WORDS}'),
        ('exclude_vms = "a"', "exclude_vms: expected a list, not text"),
        ("migrations_at_once = 0", "migrations_at_once: expected a whole number >= 1"),
        ("hold_cycles = 0", "hold_cycles: expected a whole number >= 1"),
        ("cooldown_after_success_seconds = -1", "cooldown_after_success_seconds: expected a number >= 0.0"),
        (
            '[[enforcer.windows]]\nstart = "0 22 * *"\nhours = 1',
            'windows[0]: start: "0 22 * *" is no time such as "0 22 * * 1-5" (it needs 5 fields)',
        ),
        (
            '[[enforcer.windows]]\nstart = "0 24 * * *"\nhours = 1',
            'windows[0]: start: "0 24 * * *" is no time such as "0 22 * * 1-5" (bad hour)',
        ),
        (
            '[[enforcer.blackouts]]\nstart = "0 22 30 2 *"\nhours = 1',
            'blackouts[0]: start: "0 22 30 2 *" is no time such as "0 22 * * 1-5" (bad day-of-month)',
        ),
        (
            '[[enforcer.windows]]\nstart = "0 22 * * *"\nhours = 1\ntime_zone = "Vienna"',
            'windows[0]: time_zone: "Vienna" is none that this machine knows',
        ),
        (
            '[[enforcer.windows]]\nstart = "0 22 * * *"\nhours = 1\ntime_zone = "../../etc/passwd"',
            'windows[0]: time_zone: "../../etc/passwd" is none that this machine knows',
        ),
        ('[[enforcer.windows]]\nstart = "0 22 * * *"', "windows[0].hours: is missing"),
        (
            '[[enforcer.windows]]\nstart = "0 22 * * *"\nhours = 0',
            "windows[0].hours: expected a number > 0.0",
        ),
        (
            '[[enforcer.windows]]\nstart = "0 22 * * *"\nhour = 1',
            'windows[0].hour: unknown key; did you mean "hours"?',
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/placement.toml: [enforcer] {complaint}"


@pytest.mark.parametrize("tag", ["a b", "a=b", "a or id=*", 'a"', "ö"])
def test_a_tag_is_nothing_that_a_search_takes_for_more(tmp_path: Path, tag: str) -> None:
    with pytest.raises(UserError, match="exclude_tag: expected text"):
        read(tmp_path, f"exclude_tag = '{tag}'")


def test_tables_name_clusters_groups_and_windows(tmp_path: Path) -> None:
    text = """
mode = "enforce"
[enforcer.clusters]
"*" = "observe"
"test lab" = "enforce"
[enforcer.groups]
db-apart = "approve"
[[enforcer.windows]]
start = "0 22 * * 1-5"
hours = 6
time_zone = "Europe/Vienna"
clusters = ["production"]
[[enforcer.blackouts]]
start = "0 6 1 * *"
hours = 12.5
"""
    night = Window(start="0 22 * * 1-5", hours=6, time_zone="Europe/Vienna", clusters=("production",))
    assert read(tmp_path, text) == EnforcerSettings(
        mode=Mode.ENFORCE,
        clusters={"*": Mode.OBSERVE, "test lab": Mode.ENFORCE},
        groups={"db-apart": Mode.APPROVE},
        windows=(night,),
        blackouts=(Window(start="0 6 1 * *", hours=12.5),),
    )
