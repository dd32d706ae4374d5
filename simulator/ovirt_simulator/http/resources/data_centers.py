"""Data centers, listed, added, changed and removed."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.data_center_commands import DataCenterEdit
from ovirt_simulator.core.entities import DataCenter
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete, not_simulated
from ovirt_simulator.http.bodies import Body, compatibility
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import infrastructure as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present, visible_data_centers
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.users import Permit

_QUOTA_MODES = ("audit", "disabled", "enabled")


def list_all(call: Call) -> list[str]:
    found = searched(call, "DATACENTER", visible_data_centers(call))
    return [_render(call, one, call.links("datacenters", one.id)) for one in found]


def get(call: Call, data_center_id: str) -> str:
    visible = {one.id: one for one in visible_data_centers(call)}
    found = present(visible.get(data_center_id))
    return _render(call, found, call.links("datacenters", data_center_id))


def post(call: Call) -> Response:
    body = call.body("data_center")
    edit = _edit(body)
    if not edit.name:
        raise incomplete("DataCenter", "name")
    if edit.local_storage is None:
        raise incomplete("DataCenter", "local")
    call.need(Permit.CREATE_STORAGE_POOL)
    return _shown(call, call.engine.data_centers.add(edit, caller=call.caller), 201)


def put(call: Call, data_center_id: str) -> Response:
    present(call.queries.data_center(data_center_id))
    edit = _edit(call.body("data_center"))
    call.need(Permit.EDIT_STORAGE_POOL_CONFIGURATION)
    return _shown(call, call.engine.data_centers.edit(data_center_id, edit, caller=call.caller), 200)


def delete(call: Call, data_center_id: str) -> Response:
    present(call.queries.data_center(data_center_id))
    call.need(Permit.DELETE_STORAGE_POOL)
    call.engine.data_centers.remove(data_center_id, caller=call.caller)
    return done()


def _edit(body: Body) -> DataCenterEdit:
    mode = body.text("quota_mode")
    if mode is not None and mode not in _QUOTA_MODES:
        raise fault(400, f"'{mode}' is not a member of QuotaModeType", "Invalid Enum value")
    if mode not in (None, "disabled"):
        raise not_simulated(f"the quota mode {mode}")
    return DataCenterEdit(
        name=body.text("name"),
        description=body.text("description"),
        comment=body.text("comment"),
        local_storage=body.boolean("local"),
        compatibility=compatibility(body),
    )


def _shown(call: Call, data_center: DataCenter, status: int) -> Response:
    links = call.plain_links("datacenters", data_center.id)
    return answers.document(_render(call, data_center, links), status)


def _render(call: Call, data_center: DataCenter, links: Links) -> str:
    return render.data_center(data_center, links)
