"""What a machine lacks that a release is to be made on: reported before anything is built."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

#: Packages are built and read by these, and link what they call.
_PROGRAMS = ("rpmbuild", "rpm", "cc", "curl-config", "pg_config")


def lacking(environ: Mapping[str, str]) -> Iterator[str]:
    """Each thing in a sentence."""
    for program in _PROGRAMS:
        if shutil.which(program, path=environ.get("PATH", "")) is None:
            yield f"this machine has no {program}"
    python = environ.get("RPM_PYTHON", "/usr/bin/python3.12")
    if not os.access(python, os.X_OK):
        yield f"there is no {python}: RPM_PYTHON=FILE names the Python 3.12 that the RPMs are for"
