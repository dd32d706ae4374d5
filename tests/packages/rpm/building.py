"""Builds the RPMs for the tests, twice, from two folders; and other releases made of the same files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.packages.rpm.stubs import distribution
from tests.paths import CHECKOUT
from tests.test_packaging import IGNORED

WHEELS = CHECKOUT / ".work" / "rpm" / "wheels"
EPOCH = "1790000000"

#: Packed and compiled fast: neither changes what is tested.
_FAST = [
    "--define",
    "_binary_payload w1.gzdio",
    "--define",
    "_source_payload w0.gzdio",
    "--define",
    "optflags -O0",
]


def interpreter() -> Path:
    """Find a Python 3.12 of this machine."""
    named = os.environ.get("RPM_PYTHON", "/usr/bin/python3.12")
    found = [Path(named), *sorted(Path.home().glob(".pyenv/versions/3.12.*/bin/python3.12"))]
    return next(python for python in found if python.exists())


def build_twice(place: Path) -> tuple[Path, Path]:
    """Give the folders of two builds, each with its packages in `rpms`."""
    subprocess.run(
        ["make", "--silent", str(WHEELS.relative_to(CHECKOUT) / ".fetched")], cwd=CHECKOUT, check=True
    )
    builds = (place / "once", place / "and-again")
    begun = [_begin(top) for top in builds]
    for top, process in zip(builds, begun, strict=True):
        output = process.communicate(timeout=1200)[0]
        assert process.returncode == 0, f"{top}: {output}"
    return builds


def _begin(top: Path) -> subprocess.Popen[str]:
    source = shutil.copytree(CHECKOUT, top / "source", ignore=IGNORED)
    command = [source / "packaging/rpm/build.sh", sys.executable, WHEELS, top, *_FAST]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "RPM_PYTHON": str(interpreter())}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def packages(top: Path) -> dict[str, Path]:
    """Give a build's packages by their names."""
    return {file.name.rsplit("-", 2)[0]: file for file in (top / "rpms").rglob("*.rpm")}


def ask(query: str, *files: Path) -> list[str]:
    """Ask rpm for something of package files, such as `--requires`."""
    done = subprocess.run(["rpm", "-qp", query, *files], capture_output=True, text=True, check=True)
    return sorted({line.strip() for line in done.stdout.splitlines()})


def repository(place: Path, *files: Path) -> Path:
    """Make a folder from which dnf installs these packages, and what they need of a distribution."""
    place.mkdir(parents=True)
    for file in files:
        os.link(file, place / file.name)
    own = {line.split()[0] for line in ask("--provides", *files)}
    # It has no fapolicyd, so that nothing asks for the rule for it.
    needed = [line for line in ask("--requires", *files) if not re.match(r"rpmlib|fapolicyd|\(", line)]
    missing = sorted({line for line in needed if line.split()[0] not in own})
    shutil.copy(distribution(place.parent, [*missing, "/bin/sh", "systemd"]), place)
    subprocess.run(["createrepo_c", "--quiet", str(place)], check=True)
    return place


def packed_again(
    top: Path, place: Path, change: Callable[[str], str], alter: Callable[[Path], None]
) -> list[Path]:
    """Pack the files of a build again, by a changed specification, with some files altered: that is quick.

    Of planner, page and simulator only what stands outside of the environment.
    """
    unpacked = place / "unpacked"
    unpacked.mkdir(parents=True)
    for name, file in packages(top).items():
        if name != "ovirt-placement-planner":
            _unpack(file, unpacked)
    alter(unpacked)
    lists = place / "BUILD" / "lists"
    lists.mkdir(parents=True)
    for name in ("planner", "postgresql", "web", "simulator"):
        (lists / name).write_text("")
    modes = ask("--queryformat=[%{FILEMODES:perms} %{FILENAMES}\\n]", packages(top)["ovirt-placement-libs"])
    files = (line.split() for line in modes if "/usr/share/" not in line)
    listed = (f"%dir {file}" if mode.startswith("d") else file for mode, file in files)
    (lists / "libs").write_text("".join(f"{line}\n" for line in listed))
    head, _, rest = (top / "ovirt-placement.spec").read_text().partition("\n%prep\n")
    _, _, scriptlets = rest.partition("\n%pre\n")
    body = f"%install\ncp -a {unpacked}/. %{{buildroot}}\n\n%pre\n{scriptlets}"
    # The licence stands in the sources, which are not unpacked.
    text = change(f"{head}\n{body}").replace("%license LICENSE\n", "")
    (place / "again.spec").write_text(text)
    defined = {"_topdir": place, "_rpmdir": place / "rpms", "python": interpreter()}
    options = [word for name, value in defined.items() for word in ("--define", f"{name} {value}")]
    for check in ("empty_manifest", "unpackaged_files"):
        options += ["--define", f"_{check}_terminate_build 0"]
    command = ["rpmbuild", "--quiet", "-bb", *options, *_FAST, place / "again.spec"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [*packages(place).values()]


def _unpack(package: Path, place: Path) -> None:
    archive = subprocess.run(["rpm2cpio", package], capture_output=True, check=True).stdout
    subprocess.run(["cpio", "-idmu", "--quiet"], input=archive, cwd=place, check=True)
