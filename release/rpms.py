"""The RPMs of a release, and what each of them bundles, as CycloneDX."""

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

#: In the release tag of what was linked elsewhere than on EL or Fedora.
FOR_TESTS = "test"

_BUNDLED = re.compile(r"^bundled\(python3dist\(([\w.-]+)\)\) = (\S+)$", re.MULTILINE)


class Rpm(NamedTuple):
    """A package file, and what its tags say."""

    file: Path
    name: str
    version: str
    release: str
    arch: str

    @property
    def for_tests(self) -> bool:
        return FOR_TESTS in self.release.split(".")

    @property
    def url(self) -> PackageURL:
        return PackageURL("rpm", None, self.name, f"{self.version}-{self.release}", {"arch": self.arch})


def build(tree: Path, wheels: Path, top: Path, epoch: int) -> None:
    """Build sources and RPMs in a folder. Raises `CalledProcessError` where that fails."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = (tree / "packaging/rpm/build.sh", sys.executable, wheels, top)
    subprocess.run(command, env=environment, check=True)


def gather(top: Path, into: Path, epoch: int) -> list[Rpm]:
    """Copy what was built, and write what each RPM bundles. Give those for tests, which are not copied."""
    for source in top.glob("*.src.rpm"):
        shutil.copy(source, into)
    built = [_read(file) for file in sorted(top.glob("rpms/*/*.rpm"))]
    for rpm in built:
        (into / f"{rpm.name}-{rpm.version}.rpm.cdx.json").write_text(bill_of_materials(rpm, epoch))
        if not rpm.for_tests:
            shutil.copy(rpm.file, into)
    return [rpm for rpm in built if rpm.for_tests]


def bill_of_materials(rpm: Rpm, epoch: int) -> str:
    """What an RPM declares as bundled, as CycloneDX; the same, bit for bit, of the same RPM."""
    root = Component(
        name=rpm.name, version=f"{rpm.version}-{rpm.release}", type=ComponentType.APPLICATION, purl=rpm.url,
        bom_ref=str(rpm.url),
    )  # fmt: skip
    bill = Bom(
        components=_bundled(rpm.file),
        metadata=BomMetaData(component=root, timestamp=datetime.fromtimestamp(epoch, UTC)),
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, str(rpm.url)),
    )
    bill.register_dependency(root, bill.components)
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def _bundled(file: Path) -> Iterator[Component]:
    for name, version in _BUNDLED.findall(_query_rpm("--provides", file)):
        url = PackageURL("pypi", None, name, version)
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, purl=url, bom_ref=str(url))


def _read(file: Path) -> Rpm:
    tags = _query_rpm("--queryformat=%{name} %{version} %{release} %{arch}", file).split()
    return Rpm(file, *tags)


def _query_rpm(query: str, file: Path) -> str:
    asked = ("rpm", "-qp", "--nosignature", query, file)
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
