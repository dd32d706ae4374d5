"""Builds Go clients, all in the versions of go/go.mod; what that takes stays in this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

MODULE = CHECKOUT / "tests" / "clients" / "go"


class Go:
    """The Go toolchain, with modules and caches below a folder of its own."""

    def __init__(self, place: Path) -> None:
        if shutil.which("go") is None:
            pytest.skip("Go is not installed")
        self._environment = os.environ | {
            "GOPATH": str(place / "go"),
            "GOCACHE": str(place / "go-cache"),
            "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local",
        }

    def source(self, module: str) -> Path:
        """Download a module, and give the folder that it is in, which nobody can change."""
        self.run("mod", "download", module)
        return Path(self.run("list", "-m", "-f", "{{.Dir}}", module).strip())

    def run(self, *words: str, folder: Path = MODULE) -> str:
        """Run a command of Go's to its end, and give what it prints."""
        done = subprocess.run(
            ["go", *words], cwd=folder, env=self._environment, capture_output=True, text=True
        )
        if "dial tcp" in done.stderr:
            pytest.skip("the Go module proxy cannot be reached")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
