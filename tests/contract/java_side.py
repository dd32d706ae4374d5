"""Builds what drives the proxy, or a simulated engine, on a JVM."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent / "java"

#: Builds the Java side, and writes down where its libraries are.
MAVEN = ["mvn", "-q", "-B", "compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"]


def java_class_path(project: Path = PROJECT) -> str:
    """Build the Java side and return its class path; skip the test where that cannot be."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("Maven is not installed")
    (project / "target").mkdir(exist_ok=True)
    with (project / "target/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes; Maven builds in place
        built = subprocess.run(MAVEN, cwd=project, capture_output=True, text=True)
    if built.returncode and "Could not transfer artifact" in built.stdout:
        pytest.skip("Maven cannot reach its repository")
    assert built.returncode == 0, built.stdout + built.stderr
    libraries = (project / "target/classpath").read_text().strip()
    return f"{project / 'target/classes'}:{libraries}"
