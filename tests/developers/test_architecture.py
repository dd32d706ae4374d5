"""`docs/developers/architecture.md` names every room of the tree, and nothing that is not there."""

import re

import pytest

from tests.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "developers" / "architecture.md").read_text()
COMPONENTS = {
    "ovirt_placement": CHECKOUT / "placement" / "ovirt_placement",
    "ovirt_enforcer": CHECKOUT / "enforcer" / "ovirt_enforcer",
    "ovirt_scheduler_proxy": CHECKOUT / "proxy" / "ovirt_scheduler_proxy",
    "ovirt_placement_web": CHECKOUT / "web" / "ovirt_placement_web",
}
#: Where a path of the page may begin.
ROOTS = (CHECKOUT, *COMPONENTS.values())


def rooms() -> list[str]:
    return sorted(
        folder.name
        for component in COMPONENTS.values()
        for folder in component.iterdir()
        if (folder / "__init__.py").exists()
    )


@pytest.mark.parametrize("room", rooms())
def test_every_room_is_named(room: str) -> None:
    assert re.search(rf"\b{room}\b", PAGE)


def test_every_component_is_named() -> None:
    packages = [path.parent for path in CHECKOUT.glob("*/ovirt_*/__init__.py")]
    assert len(packages) == 6
    for package in packages:
        assert f"{package.parent.name}/" in PAGE
        assert package.name in PAGE


def there(path: str) -> bool:
    return any((root / path).exists() or (root / f"{path}.py").exists() for root in ROOTS)


def test_every_path_is_there() -> None:
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?/?)`", PAGE)
    paths += re.findall(r"^ +([a-z_]+/[a-z_/]+(?:\.py)?)", PAGE, re.MULTILINE)
    assert len(paths) > 30
    assert [path for path in paths if not there(path)] == []
