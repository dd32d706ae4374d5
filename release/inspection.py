"""Whether what was built can be published, as PyPI and others judge it, and what is in it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from release.tree import CHECKOUT

#: What the RPMs hold as well.
_EXTRAS = "planner,postgresql,web"


def inspect(folder: Path) -> None:
    """Raises `CalledProcessError` if a package would be refused, or holds what it should not."""
    wheels = sorted(folder.glob("*.whl"))
    packages = [
        *wheels,
        *sorted(folder.glob("ovirt_placement-[0-9]*.tar.gz")),
        *sorted(folder.glob("*simulator*.gz")),
    ]
    _run("twine", "check", "--strict", *packages)
    for wheel in wheels:
        settings = CHECKOUT / ("simulator" if "simulator" in wheel.name else "") / "pyproject.toml"
        _run("check-wheel-contents", "--config", settings, wheel)


def bill_of_materials(wheel: Path, work: Path, into: Path) -> None:
    """Write which libraries pip installs today with the wheel and its extras, as CycloneDX."""
    venv.create(work)
    python = work / "bin" / "python"
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--disable-pip-version-check",
    )
    subprocess.run((*pip, f"{wheel}[{_EXTRAS}]"), check=True)
    describe(python, into)


def describe(python: Path, into: Path) -> None:
    """Write what an interpreter's environment holds, as CycloneDX."""
    _run("cyclonedx-py", "environment", "--output-reproducible", "--spec-version", "1.6", "-o", into, python)


def _run(tool: str, *arguments: str | Path) -> None:
    subprocess.run((Path(sys.executable).with_name(tool), *arguments), check=True)
