"""Versions of templates: a name means the latest of them."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types

ORIGIN = types.Vm(id="idle")


def test_a_name_means_the_latest_version(sdk: Connection) -> None:
    system = sdk.system_service()
    templates, vms = system.templates_service(), system.vms_service()
    first = templates.add(types.Template(name="golden", vm=ORIGIN))
    assert (first.version.version_number, first.version.base_template.id) == (1, first.id)
    of_first = types.TemplateVersion(base_template=types.Template(id=first.id), version_name="two")
    second = templates.add(types.Template(name="whatever", vm=ORIGIN, version=of_first))
    third = templates.add(types.Template(name="golden", vm=ORIGIN, version=of_first))
    assert [(one.name, one.version.version_number) for one in (second, third)] == [
        ("golden", 2),
        ("golden", 3),
    ]
    assert templates.list(search="version_name=two and name=golden")[0].version.base_template.id == first.id
    cluster, named = types.Cluster(name="Default"), types.Template(name="golden")
    assert vms.add(types.Vm(name="new", cluster=cluster, template=named)).template.id == third.id
    templates.template_service(first.id).remove()
    found = {one.id: one.version.base_template.id for one in templates.list(search="name=golden")}
    assert found == {second.id: second.id, third.id: second.id}


def test_what_cannot_be_a_version_is_refused(sdk: Connection) -> None:
    templates = sdk.system_service().templates_service()
    first = templates.add(types.Template(name="golden", vm=ORIGIN))

    def version_of(base: str) -> types.Template:
        version = types.TemplateVersion(base_template=types.Template(id=base))
        return types.Template(name="x", vm=ORIGIN, version=version)

    second = templates.add(version_of(first.id))
    for base, words in (
        (second.id, "Only the first template version"),
        ("00000000-0000-0000-0000-000000000000", "Blank template can't have sub-templates"),
        ("none", "The relevant Template doesn't exist"),
    ):
        with pytest.raises(Error, match=words):
            templates.add(version_of(base))
    with pytest.raises(Error, match="name is already in use"):
        templates.add(types.Template(name="golden", vm=ORIGIN))
