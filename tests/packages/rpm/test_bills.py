"""What `make release` says of each RPM: the libraries in it, as the lock and the package itself name them."""

import json
import re
from pathlib import Path

import pytest

from release import rpms
from tests.packages.rpm.building import ask, packages
from tests.paths import CHECKOUT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

EPOCH = 1790000000


@pytest.fixture(scope="module")
def gathered(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("dist")
    left = rpms.gather(build, into, EPOCH)
    # Linked here, none may be published; the sources may.
    assert {rpm.name for rpm in left} == packages(build).keys()
    return into


def bills(gathered: Path) -> dict[str, str]:
    return {file.name.rsplit("-", 1)[0]: file.read_text() for file in gathered.glob("*.rpm.cdx.json")}


def test_sources_are_published_and_each_rpm_has_its_bill(gathered: Path, build: Path, tmp_path: Path) -> None:
    (sources,) = gathered.glob("*.rpm")
    assert re.fullmatch(r"ovirt-placement-[0-9.]+-1\.src\.rpm", sources.name)
    assert bills(gathered).keys() == packages(build).keys()
    rpms.gather(build, tmp_path, EPOCH)
    assert bills(tmp_path) == bills(gathered)


def test_each_meets_the_schema(gathered: Path) -> None:
    # Its grammars take two seconds to load, in each worker that collects this.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    judge = JsonStrictValidator(SchemaVersion.V1_6)
    assert {name: judge.validate_str(text) for name, text in bills(gathered).items()} == dict.fromkeys(
        bills(gathered)
    )


def test_they_name_what_the_packages_hold(gathered: Path, build: Path) -> None:
    """By the metadata of the installed libraries, which the packages list as files."""
    for name, file in packages(build).items():
        held = {
            found.lower().replace("_", "-").replace(".", "-")
            for line in ask("--list", file)
            for found in re.findall(r"/site-packages/([^/]+)-[^-/]+\.dist-info$", line)
        } - {"ovirt-placement", "ovirt-placement-simulator"}
        described = json.loads(bills(gathered)[name])
        named = {
            one["name"].lower().replace("_", "-").replace(".", "-") for one in described.get("components", [])
        }
        assert named == held, name
        assert described["metadata"]["component"]["name"] == name


def test_their_versions_are_those_of_the_wheels(gathered: Path) -> None:
    locked = dict(
        re.findall(
            r"^([\w-]+)==(\S+)", (CHECKOUT / "packaging/rpm/requirements-3.12.lock").read_text(), re.MULTILINE
        )
    )
    found = {
        one["name"]: one["version"]
        for text in bills(gathered).values()
        for one in json.loads(text).get("components", [])
    }
    assert len(found) > 20
    assert found.items() <= locked.items()
