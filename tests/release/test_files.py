"""The files of a release: the same whenever they are made, complete, and such that others take them."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from release import artifacts, version
from release.artifacts import checksums, repack
from release.checks import Section, collection_changelog, sections
from tests.paths import CHECKOUT

EPOCH = 1893456000
CHANGES = """\
# Changes

## 2.1.0 (unreleased)

- A role for Ansible, which
  installs all.
- More.

## 2.0.0 (2029-01-01)

- All.
"""


# -- one changelog
def test_the_changelog_by_version() -> None:
    newest, first = sections(CHANGES)
    assert newest == Section(
        "2.1.0", "unreleased", ("- A role for Ansible, which\n  installs all.", "- More.")
    )
    assert (newest.is_released, first.is_released) == (False, True)


def test_the_collections_changelog_has_what_names_ansible() -> None:
    _, _, text = collection_changelog(CHANGES).partition("\n\n## ")
    assert text == "2.1.0 (unreleased)\n\n- A role for Ansible, which\n  installs all.\n"


# -- archives
def packed(folder: Path, names: tuple[str, ...], moment: int) -> Path:
    """An archive as any tool makes one: in some order, with times and an owner."""
    archive = folder / f"{moment}.tar.gz"
    with tarfile.open(archive, "w:gz") as into:
        for name in names:
            file = folder / name
            file.write_text(name)
            os.utime(file, (moment, moment))
            entry = into.gettarinfo(file, arcname=f"it/{name}")
            entry.uid, entry.uname, entry.mode = moment, "me", 0o775 if name == "run" else 0o600
            with file.open("rb") as content:
                into.addfile(entry, content)
    return archive


def test_an_archive_is_the_same_by_anybody_at_any_time(tmp_path: Path) -> None:
    one, other = packed(tmp_path, ("a", "run"), 1000), packed(tmp_path, ("run", "a"), 2000)
    assert one.read_bytes() != other.read_bytes()
    for archive in (one, other):
        repack(archive, EPOCH)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as held:
        found = [(each.name, each.mode, each.mtime, each.uid, each.uname) for each in held]
    assert found == [("it/a", 0o644, EPOCH, 0, ""), ("it/run", 0o755, EPOCH, 0, "")]


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    files = [packed(tmp_path, ("a",), moment) for moment in (1000, 2000)]
    (tmp_path / "SHA256SUMS").write_text("".join(checksums(files)))
    check = ("sha256sum", "--check", "--strict", "SHA256SUMS")
    subprocess.run(check, cwd=tmp_path, check=True, capture_output=True)
    files[0].write_text("another")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1


# -- all files
@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the tree as it stands here."""
    folder = tmp_path_factory.mktemp("repository") / "it"
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=CHECKOUT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    who = ("-c", "user.name=x", "-c", "user.email=x")
    for command in (("init", "-q"), ("add", "--all", "--force"), (*who, "commit", "-q", "-m", "all")):
        subprocess.run(("git", *command), cwd=folder, check=True)
    (folder / "not-committed").touch()
    return folder


@pytest.fixture(scope="module")
def made(committed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("dist")
    artifacts.make(tmp_path_factory.mktemp("work"), into, EPOCH, committed)
    return into


@pytest.mark.nightly
def test_all_files_are_made_and_others_take_them(made: Path) -> None:
    number = version()
    assert {file.name for file in made.iterdir()} == {
        f"ovirt_placement-{number}.tar.gz",
        f"ovirt_placement-{number}-py3-none-any.whl",
        f"ovirt_placement_simulator-{number}.tar.gz",
        f"ovirt_placement_simulator-{number}-py3-none-any.whl",
        f"ovirt_placement-core-{number}.tar.gz",
        f"ovirt-placement-docs-{number}.tar.gz",
    }
    artifacts.inspect(made)
    with tarfile.open(made / f"ovirt-placement-docs-{number}.tar.gz") as docs:
        assert f"ovirt-placement-docs-{number}/docs/quick-start.html" in docs.getnames()


@pytest.mark.nightly
def test_a_wheel_with_what_does_not_belong_there_is_refused(made: Path, tmp_path: Path) -> None:
    (good,) = made.glob("ovirt_placement_simulator-*.whl")
    wheel = tmp_path / good.name
    strange = b"more = True\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(strange).digest()).rstrip(b"=")
    with zipfile.ZipFile(good) as held, zipfile.ZipFile(wheel, "w") as into:
        for name in held.namelist():
            content = held.read(name)
            if name.endswith("/RECORD"):
                content += b"tests/__init__.py,sha256=%b,%d\n" % (digest, len(strange))
            into.writestr(name, content)
        into.writestr("tests/__init__.py", strange)
    with pytest.raises(subprocess.CalledProcessError, match="check-wheel-contents"):
        artifacts.inspect(tmp_path)


@pytest.mark.nightly
def test_sources_and_wheel_are_the_same_when_built_again(committed: Path, made: Path, tmp_path: Path) -> None:
    tree = artifacts.export(committed, tmp_path / "another-place")
    assert not (tree / "not-committed").exists()
    again = tmp_path / "again"
    again.mkdir()
    artifacts.distribution(tree / "simulator", tmp_path / "work", again, EPOCH)
    artifacts.distribution(tree, tmp_path / "work", again, EPOCH)
    assert len(list(again.iterdir())) == 4
    assert [one.name for one in again.iterdir() if one.read_bytes() != (made / one.name).read_bytes()] == []


@pytest.mark.nightly
def test_the_bill_of_materials_names_what_is_installed(made: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    (wheel,) = made.glob("ovirt_placement-*.whl")
    python = tmp_path / "venv" / "bin" / "python"
    install = ("--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    subprocess.run((sys.executable, "-m", "pip", *install), check=True)
    artifacts.describe(python, tmp_path / "it.cdx.json")
    bill = json.loads((tmp_path / "it.cdx.json").read_text())
    (component,) = bill["components"]
    assert (component["name"], component["version"]) == ("ovirt-placement", version())
    assert component["licenses"] == [{"license": {"acknowledgement": "declared", "id": "Apache-2.0"}}]
