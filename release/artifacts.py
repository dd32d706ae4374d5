"""Makes the files of a release: sources, wheels, the collection for Ansible, the documentation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from release import archives, site
from release.tree import CHECKOUT, version

_BUILD = "import sys, setuptools.build_meta as build; getattr(build, sys.argv[1])(sys.argv[2])"


def export(checkout: Path, place: Path) -> Path:
    """Lay what is committed, and nothing else of a checkout, into a folder."""
    place.mkdir(parents=True)
    archive = place / "tree.tar"
    subprocess.run(("git", "-C", checkout, "archive", "-o", archive.resolve(), "HEAD"), check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    archive.unlink()
    return place


def distribution(source: Path, work: Path, into: Path, epoch: int) -> None:
    """Build sources, and from these alone the wheel."""
    _setuptools("build_sdist", source, into, epoch)
    name = "ovirt_placement_simulator" if source.name == "simulator" else "ovirt_placement"
    sdist = into / f"{name}-{version(source)}.tar.gz"
    archives.repack(sdist, epoch)
    with tarfile.open(sdist) as packed:
        packed.extractall(work, filter="data")
    _setuptools("build_wheel", work / sdist.name.removesuffix(".tar.gz"), into, epoch)


def collection(tree: Path, into: Path, epoch: int) -> None:
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = (galaxy, "collection", "build", tree / "packaging" / "ansible", "--output-path", into)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    archives.repack(into / f"ovirt_placement-core-{version(tree)}.tar.gz", epoch)


def documentation(tree: Path, work: Path, into: Path, epoch: int) -> None:
    name = f"ovirt-placement-docs-{version(tree)}"
    html = site.build(work, tree).rename(work / name)
    archives.pack(html, into / f"{name}.tar.gz", epoch)


def make(work: Path, into: Path, epoch: int, checkout: Path = CHECKOUT) -> None:
    """Make all files of a release in a folder, which is emptied before."""
    for folder in (work, into):
        shutil.rmtree(folder, ignore_errors=True)
    into.mkdir(parents=True)
    tree = export(checkout, work / "tree")
    distribution(tree, work / "sources", into, epoch)
    distribution(tree / "simulator", work / "sources", into, epoch)
    collection(tree, into, epoch)
    documentation(tree, work / "site", into, epoch)


def _setuptools(step: str, source: Path, into: Path, epoch: int) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = (sys.executable, "-c", _BUILD, step, str(into.resolve()))
    subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)
