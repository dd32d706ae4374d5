"""go-ovirt-client, the client of OpenShift's installer: its own tests, as they are, against an engine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.golang import Go

pytestmark = pytest.mark.slow

PACKAGE = "github.com/ovirt/go-ovirt-client/v3"

#: Its tests that are left out, and why.
LEFT_OUT = {
    "contents of disks": r"Test(ImageUpload|ImageDownload)",
    "graphics": r"TestListAndRemoveGraphicsConsoles$",
    "networks": r"Test\w*(NIC|VMIPAddressReporting)",
    "a server on the internet": r"TestBadURL$",
    "ten minutes of trying again what is refused": r"TestCannotRemoveTemplate",
    "an engine that answers 404, not 400, for a group that is gone": r"TestAffinityGroupCreation$",
}
#: They need a second storage domain.
SKIPPED = {"TestTemplateDiskCopy", "TestVMDiskStorageDomain"}


@pytest.fixture(scope="module")
def suite(installed: Path) -> tuple[Path, Path]:
    """Build its tests; gives the program, and the folder that it must run in."""
    go, program = Go(installed), installed / "go-ovirt-client.test"
    go.run("test", "-c", "-o", str(program), PACKAGE)
    return program, Path(go.run("list", "-m", "-f", "{{.Dir}}", PACKAGE).strip())


def test_its_own_suite(suite: tuple[Path, Path], engine: str, folder: Path) -> None:
    program, place = suite
    environment = os.environ | {
        "OVIRT_URL": engine,
        "OVIRT_USERNAME": "admin@internal",
        "OVIRT_PASSWORD": "password",
        "OVIRT_CAFILE": str(folder / "ca.pem"),
    }

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), "-client=live", *options]
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=600
        )

    known = [name for name in run("-test.list=.").stdout.splitlines() if name.startswith("Test")]
    wanted = [name for name in known if not any(re.match(each, name) for each in LEFT_OUT.values())]
    done = run("-test.v", f"-test.run=^({'|'.join(wanted)})$")
    assert done.returncode == 0, done.stdout[-20_000:]
    outcomes = {name: word for word, name in re.findall(r"^--- (\w+): (\w+)", done.stdout, re.MULTILINE)}
    assert set(outcomes) == set(wanted)
    assert {name for name, word in outcomes.items() if word == "SKIP"} == SKIPPED
    assert len(wanted) > 50
