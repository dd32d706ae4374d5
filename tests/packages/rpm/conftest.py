"""What the tests of the RPMs share: one pair of builds, and machines to install them on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.rpm.building import build_twice, interpreter, packages, repository
from tests.packages.rpm.machine import Machine, machine


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build_twice(tmp_path_factory.mktemp("rpm"))


@pytest.fixture(scope="session")
def build(builds: tuple[Path, Path]) -> Path:
    return builds[0]


@pytest.fixture(scope="session")
def released(build: Path) -> Path:
    """The folder from which dnf installs what was built."""
    return repository(build / "repository", *packages(build).values())


@pytest.fixture(scope="module")
def installed(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with all packages but the rule for fapolicyd, which it does not have."""
    with machine(tmp_path_factory.mktemp("installed"), released, interpreter()) as made:
        made.dnf(
            "install", "ovirt-placement-*", "ovirt-placement", "ovirt-scheduler-proxy", "-x", "*-fapolicyd"
        )
        yield made
