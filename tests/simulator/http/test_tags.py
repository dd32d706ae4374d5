"""Tags are added below others, changed, removed with those below them, and put on what bears them."""

from __future__ import annotations

from ovirtsdk4 import Connection, types

from ovirt_simulator.core.engine import Engine

ROOT = "00000000-0000-0000-0000-000000000000"


def names(found: list[types.Tag]) -> list[str]:
    return [tag.name for tag in found]


def reported(engine: Engine) -> tuple[int, str]:
    event = engine.queries.events()[0]
    return event.code, event.description


def test_a_tag_that_a_vm_has_is_reported_differently(sdk: Connection, engine: Engine) -> None:
    of_vm = sdk.system_service().vms_service().vm_service("web1").tags_service()
    of_vm.add(types.Tag(name="red"))
    assert reported(engine) == (454, "Tag red already attached to VM(s) web1.")
