"""Templates: listed with those that the state knows by their ids alone, made of VMs, removed."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.images import Template
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import template as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import named, present, visible_templates
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.users import Permit


def list_templates(call: Call) -> list[str]:
    found = searched(call, "TEMPLATE", visible_templates(call))
    return [render.template(one, call.links("templates", one.id)) for one in found]


def get_template(call: Call, template_id: str) -> str:
    visible = {template.id: template for template in visible_templates(call)}
    return render.template(present(visible.get(template_id)), call.links("templates", template_id))


def post_template(call: Call) -> Response:
    """Make a template of the VM that the body names by id or name, or another version of a template."""
    body = call.body("template")
    name, vm = body.text("name"), body.child("vm")
    if not name:
        raise incomplete("Template", "name")
    if vm is None or (vm.id is None and not vm.text("name")):
        raise incomplete("Template", "vm.id|name")
    version = body.child("version")
    if version is not None and version.child("base_template") is None:
        raise incomplete("TemplateVersion", "baseTemplate")
    call.need(Permit.CREATE_TEMPLATE)
    template = call.engine.templates.add(
        name,
        named(vm, call.queries.vms()),
        description=body.text("description") or "",
        base=None if version is None else version.child_id("base_template") or "",
        version_name=None if version is None else version.text("version_name"),
        caller=call.caller,
    )
    return answers.document(render.template(template, call.plain_links("templates", template.id)), 201)


def delete_template(call: Call, template_id: str) -> Response:
    _template(call, template_id)
    call.need(Permit.DELETE_TEMPLATE)
    call.engine.templates.remove(template_id, caller=call.caller)
    return done()


def list_disk_attachments(call: Call, template_id: str) -> list[str]:
    template = _template(call, template_id)
    return [
        render.disk_attachment(
            template, disk, call.links("templates", template_id, "diskattachments", disk.id)
        )
        for disk in template.vm.disks
    ]


def get_disk_attachment(call: Call, template_id: str, disk_id: str) -> str:
    template = _template(call, template_id)
    disk = present(next((disk for disk in template.vm.disks if disk.id == disk_id), None))
    return render.disk_attachment(
        template, disk, call.links("templates", template_id, "diskattachments", disk_id)
    )


def _template(call: Call, template_id: str) -> Template:
    return present(call.queries.template(template_id))
