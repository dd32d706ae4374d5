"""What setup.cfg says is installed is what the tree holds."""

import configparser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_package_is_listed() -> None:
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg")
    listed = set(configuration["options"]["packages"].split())
    folders = dict(line.split(" = ") for line in configuration["options"]["package_dir"].strip().splitlines())
    found = {
        ".".join((package, *init.parent.relative_to(ROOT / folder).parts))
        for package, folder in folders.items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert listed == found


def test_every_dependency_has_its_reason() -> None:
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg")
    requirements = configuration["options"]["install_requires"].strip().splitlines()
    for extra in configuration["options.extras_require"].values():
        requirements += extra.strip().splitlines()
    reasons = (ROOT / "docs" / "dependencies.md").read_text().lower()
    names = {requirement.split()[0].split("[")[0].lower() for requirement in requirements}
    assert {name for name in names if name not in reasons} == set()
