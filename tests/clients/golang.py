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

    def run(self, *words: str) -> str:
        """Run a command of Go's to its end, and give what it prints."""
        done = subprocess.run(
            ["go", *words], cwd=MODULE, env=self._environment, capture_output=True, text=True
        )
        if "dial tcp" in done.stderr:
            pytest.skip("the Go module proxy cannot be reached")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
