"""Installs pinned packages from PyPI into a folder of their own, which a process has in its path."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def install(place: Path, *pinned: str) -> Path:
    """Install exactly these, without what they depend on; gives the folder. Once is enough for all runs."""
    folder = place / "-".join(pinned).replace("==", "-")
    with _made(folder) as partly:
        if partly is not None:
            _pip("install", "--no-deps", "--target", str(partly), *pinned)
    return folder


def sources(place: Path, pinned: str) -> Path:
    """Unpack the source distribution of a package; gives the folder, once as well."""
    folder = place / f"{pinned}-source".replace("==", "-")
    with _made(folder) as partly:
        if partly is not None:
            _pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(partly), pinned)
            (archive,) = partly.glob("*.tar.gz")
            shutil.unpack_archive(archive, partly, filter="data")
    return folder


@contextmanager
def _made(folder: Path) -> Iterator[Path | None]:
    """Give the folder to fill, or None if it is there; several processes may ask for the same."""
    with folder.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            yield None
            return
        partly = folder.with_name(f"{folder.name}.partly")
        shutil.rmtree(partly, ignore_errors=True)
        yield partly
        partly.rename(folder)


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if "NewConnectionError" in done.stderr or "Failed to establish" in done.stderr:
        pytest.skip("PyPI cannot be reached")
    assert done.returncode == 0, done.stdout + done.stderr
