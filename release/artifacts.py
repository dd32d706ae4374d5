"""Makes the files of a release, the same bit for bit whenever and wherever they are made, and judges them."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

from release import CHECKOUT, version

_MODE, _EXECUTABLE = 0o644, 0o755


def repack(archive: Path, epoch: int) -> None:
    """Write a .tar.gz again, with the files that it holds and nothing of who made it when."""
    with tarfile.open(archive) as packed:
        held = {one.name: (one, _content(packed, one)) for one in packed.getmembers() if one.isfile()}
    members = ((name, bool(one.mode & 0o100), content) for name, (one, content) in held.items())
    archive.write_bytes(_packed(members, epoch))


def pack(folder: Path, archive: Path, epoch: int) -> None:
    """Write all files of a folder, under its name, into a .tar.gz."""
    files = (file for file in folder.rglob("*") if file.is_file())
    members = ((f"{folder.name}/{file.relative_to(folder)}", False, file.read_bytes()) for file in files)
    archive.write_bytes(_packed(members, epoch))


def checksums(files: Iterable[Path]) -> Iterator[str]:
    """Lines that `sha256sum --check` reads."""
    for file in sorted(files):
        yield f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"


def _packed(members: Iterable[tuple[str, bool, bytes]], epoch: int) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, executable, content in sorted(members):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch
            entry.mode = _EXECUTABLE if executable else _MODE
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def _content(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = packed.extractfile(member)
    return file.read() if file is not None else b""


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
    repack(sdist, epoch)
    with tarfile.open(sdist) as packed:
        packed.extractall(work, filter="data")
    _setuptools("build_wheel", work / sdist.name.removesuffix(".tar.gz"), into, epoch)


def collection(tree: Path, into: Path, epoch: int) -> None:
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = (galaxy, "collection", "build", tree / "packaging" / "ansible", "--output-path", into)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    repack(into / f"ovirt_placement-core-{version(tree)}.tar.gz", epoch)


def documentation(tree: Path, work: Path, into: Path, epoch: int) -> None:
    name = f"ovirt-placement-docs-{version(tree)}"
    html = build_site(work, tree).rename(work / name)
    pack(html, into / f"{name}.tar.gz", epoch)


# -- `make site`: the documentation as HTML, from the Markdown in the tree; no page needs a network.
_SETTINGS = Path(__file__).with_name("sphinx")
#: What pages are made from, and the files that they link to; Sphinx would search all of a checkout.
_SOURCES = ("*.md", "LICENSE", "docs/**/*", "packaging/*.toml")


def build_site(place: Path, checkout: Path = CHECKOUT) -> Path:
    """Build below `place`, and return the folder of the HTML.

    Raises `CalledProcessError` at the end if a link of a page leads to no page, file or heading, or a page is
    in no group of docs/index.md.
    """
    source, html = place / "source", place / "html"
    for made in (source, html):
        shutil.rmtree(made, ignore_errors=True)
    for file in (one for pattern in _SOURCES for one in checkout.glob(pattern) if one.is_file()):
        copy = source / file.relative_to(checkout)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    settings = ("-b", "html", "-c", _SETTINGS, "-D", f"release={version(checkout)}")
    strict = ("--fail-on-warning", "--nitpicky", "--quiet")
    command = (sys.executable, "-m", "sphinx", *settings, *strict, "-d", place / "read", source, html)
    subprocess.run(command, check=True)
    return html


# -- All files, and what is said of them.
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


def inspect(folder: Path) -> None:
    """Judge packages as PyPI and others do.

    Raises `CalledProcessError` if one would be refused, or holds what it should not.
    """
    wheels = sorted(folder.glob("*.whl"))
    sources = (*folder.glob("ovirt_placement-[0-9]*.tar.gz"), *folder.glob("*simulator*.gz"))
    _run("twine", "check", "--strict", *wheels, *sorted(sources))
    for wheel in wheels:
        settings = CHECKOUT / ("simulator" if "simulator" in wheel.name else "") / "pyproject.toml"
        _run("check-wheel-contents", "--config", settings, wheel)


def bill_of_materials(wheel: Path, work: Path, into: Path) -> None:
    """Write which libraries pip installs today with the wheel and the extras of the RPMs, as CycloneDX."""
    venv.create(work)
    python = work / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", *quiet)
    subprocess.run((*pip, f"{wheel}[planner,postgresql,web]"), check=True)
    describe(python, into)


def describe(python: Path, into: Path) -> None:
    """Write what an interpreter's environment holds, as CycloneDX."""
    _run("cyclonedx-py", "environment", "--output-reproducible", "--spec-version", "1.6", "-o", into, python)


def _run(tool: str, *arguments: str | Path) -> None:
    subprocess.run((Path(sys.executable).with_name(tool), *arguments), check=True)


if __name__ == "__main__":
    try:
        print(build_site(CHECKOUT / ".work" / "site") / "index.html")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
