"""`docs/developers/add-a-metric.md`, carried out: a real enforcer serves the metric of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import walk_through

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

PAGE = walk_through.read("add-a-metric.md")
MOVER = "enforcer/ovirt_enforcer/service/recording.py"
TEST = "tests/enforcer/service/test_process.py"
CASE = f"{TEST}::test_metrics_of_a_dry_run"
FILES = ["enforcer/ovirt_enforcer/service/metrics.py", MOVER, TEST]


def test_the_page_is_a_line_in_each_of_three_files() -> None:
    assert [(block.file, block.change) for block in PAGE] == [(file, True) for file in FILES]


def test_the_metric_of_the_page_is_served(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree")
    done = walk_through.run_tests(tree, CASE)
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_it_is_missed_where_nothing_moves_it(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree", lambda block: block.file != MOVER)
    done = walk_through.run_tests(tree, CASE)
    assert done.returncode == 1, done.stdout
    assert "ovirt_placement_enforcer_migrations_planned_total" in done.stdout
