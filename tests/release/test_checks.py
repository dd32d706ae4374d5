"""What keeps a commit from being released, each seen in a repository of its own; and what a machine lacks."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from release.checks import epoch, faults, lacking

#: When everything is committed.
COMMITTED = datetime(2030, 1, 1, tzinfo=UTC)
FILES = {
    "setup.cfg": "[metadata]\nversion = 2.1.0\n",
    "simulator/setup.cfg": "[metadata]\nversion = 2.1.0\n",
    "packaging/ansible/galaxy.yml": "version: 2.1.0\n",
    "packaging/rpm/requirements-3.12.lock": "lxml==6.0.2\n",
    "CHANGELOG.md": "# Changes\n\n## 2.1.0 (2030-01-01)\n\n- More.\n\n## 2.0.0 (2029-01-01)\n\n- All.\n",
}


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        moment = str(int(COMMITTED.timestamp()))
        who = {f"GIT_{part}_{key}": "x" for part in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": f"{moment} +0000", "GIT_COMMITTER_DATE": f"{moment} +0000"}
        command = ("git", "-C", self.folder, *arguments)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **who, **when})

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, *tags: str, **changed: str) -> None:
        for name, text in {**FILES, **changed}.items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all")
        for tag in tags:
            self.git("tag", tag)

    def faults(self, after: timedelta = timedelta(days=1)) -> list[str]:
        return list(faults(self.folder, COMMITTED + after))


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    return Repository(tmp_path)


def test_a_commit_that_can_be_released(repository: Repository) -> None:
    repository.commit("v2.1.0")
    assert repository.faults() == []
    assert epoch(repository.folder) == COMMITTED.timestamp()


@pytest.mark.parametrize("tags", [(), ("v2.0.0",), ("2.1.0",), ("v2.1.0", "v2.2.0")])
def test_a_tag_that_is_not_the_version(repository: Repository, tags: tuple[str, ...]) -> None:
    repository.commit(*tags)
    (fault,) = repository.faults()
    assert fault.startswith("the tags of this commit are not the version (v2.1.0 in setup.cfg) alone: ")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("simulator/setup.cfg", "[metadata]\nversion = 2.0.0\n", "simulator/setup.cfg has version 2.0.0"),
        ("packaging/ansible/galaxy.yml", "version: 2.2.0\n", "galaxy.yml has version 2.2.0, and"),
        (
            "CHANGELOG.md",
            "# Changes\n\n## 2.1.0 (unreleased)\n",
            "CHANGELOG.md begins with 2.1.0 (unreleased)",
        ),
        (
            "CHANGELOG.md",
            "# Changes\n\n## 2.0.0 (2029-01-01)\n",
            "CHANGELOG.md begins with 2.0.0 (2029-01-01)",
        ),
        ("CHANGELOG.md", "# Changes\n", "CHANGELOG.md begins with nothing: it needs 2.1.0"),
    ],
)
def test_versions_and_changelog(repository: Repository, name: str, text: str, fault: str) -> None:
    repository.commit("v2.1.0", **{name: text})
    (found,) = repository.faults()
    assert found.startswith(fault)


def test_locks_last_for_90_days(repository: Repository) -> None:
    repository.commit("v2.1.0")
    assert repository.faults(timedelta(days=90)) == []
    (fault,) = repository.faults(timedelta(days=91))
    assert fault.startswith("packaging/rpm/requirements-3.12.lock is 91 days old")


def test_a_tree_that_is_changed_and_a_lock_that_is_not_committed(repository: Repository) -> None:
    repository.commit("v2.1.0")
    repository.write("setup.cfg", f"{FILES['setup.cfg']}# more\n")
    repository.write("packaging/rpm/requirements-3.14.lock", "")
    changed, lock = repository.faults()
    assert changed.endswith("commit or remove: setup.cfg, packaging/rpm/requirements-3.14.lock")
    assert lock.startswith("packaging/rpm/requirements-3.14.lock is not committed")


def test_a_release_needs_a_lock(repository: Repository) -> None:
    repository.commit("v2.1.0")
    repository.git("rm", "--quiet", "packaging/rpm/requirements-3.12.lock")
    repository.git("commit", "--quiet", "--amend", "--message", "none")
    repository.git("tag", "--force", "v2.1.0")
    assert repository.faults() == ["there are no locked requirements (packaging/**/*.lock)"]


# -- What a machine lacks is known before a release is built for minutes.
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


def test_python_is_looked_for_where_distributions_have_it(environ: dict[str, str]) -> None:
    del environ["RPM_PYTHON"]
    found = [*lacking(environ)]
    assert len(found) == (not Path("/usr/bin/python3.12").exists())
    assert all("RPM_PYTHON=FILE" in one for one in found)
