"""The Java SDK: what people do with it, in the order of java/src/main/java/clients/JavaSdk.java."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.contract.java_side import java_class_path

pytestmark = [pytest.mark.nightly, pytest.mark.java]

SEEN = """\
vms=idle,web
links=Default alpha
statistics=1073741824
roles=1
tags=mine:a tag
tags left=
affinity label=idle
affinity group=mine 2 true idle
affinity groups left=apart
permission=UserRole 123
permissions left=1
event=WARNING from the SDK
policies=none
units=FILTER
started=beta
refused=VmAffinityGroups
stopped=nowhere
migrating=MIGRATING
migrated=beta
created=1073741824 root
left=idle,web
deactivated=MAINTENANCE alpha
activated=UP
"""


def test_what_it_sees(engine: str) -> None:
    command = ["java", "-cp", java_class_path(Path(__file__).parent / "java"), "clients.JavaSdk", engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == SEEN, done.stderr
    assert done.returncode == 0
