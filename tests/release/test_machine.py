"""What a machine lacks is known before a release is built for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.checks import lacking

PROGRAMS = ("rpmbuild", "rpm", "cc", "curl-config", "pg_config", "python3.12")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for name in PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return {"PATH": str(tmp_path), "RPM_PYTHON": str(tmp_path / "python3.12")}


def test_a_machine_that_has_all(environ: dict[str, str]) -> None:
    assert [*lacking(environ)] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_is_named_that_is_not_there(environ: dict[str, str], tmp_path: Path, program: str) -> None:
    (tmp_path / program).unlink()
    (found,) = lacking(environ)
    assert program in found


def test_python_is_looked_for_where_distributions_have_it(
    environ: dict[str, str],
) -> None:
    del environ["RPM_PYTHON"]
    found = [*lacking(environ)]
    assert len(found) == (not Path("/usr/bin/python3.12").exists())
    assert all("RPM_PYTHON=FILE" in one for one in found)
