"""Uploads to disks. Data is sent to an address of its own, without login, which takes it and forgets it."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.transfer_commands import ImageTransfer
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.users import Permit

#: Where data is sent to, below which stands the id of the transfer.
IMAGES = "/images"


def post_transfer(call: Call) -> Response:
    body = call.body("image_transfer")
    disk_id = body.child_id("disk") or body.child_id("image")
    if disk_id is None:
        raise incomplete("ImageTransfer", "image.id|disk.id|snapshot.id")
    if body.text("direction") == "download":
        raise fault(400, "Disks of this engine have no content to download.")
    call.need(Permit.EDIT_DISK_PROPERTIES)
    transfer = call.engine.transfers.begin(disk_id, caller=call.caller)
    links = call.plain_links("imagetransfers", transfer.id)
    return answers.document(_render(call, transfer, links), 201)


def get_transfer(call: Call, transfer_id: str) -> str:
    transfer = call.engine.transfers.get(transfer_id)
    return _render(call, transfer, call.links("imagetransfers", transfer_id))


def finalize(call: Call, transfer_id: str) -> Response:
    call.engine.transfers.end(transfer_id, success=True)
    return done()


def cancel(call: Call, transfer_id: str) -> Response:
    call.engine.transfers.end(transfer_id, success=False)
    return done()


def _render(call: Call, transfer: ImageTransfer, links: Links) -> str:
    url = f"{call.server_url}{IMAGES}/{transfer.id}"
    return links.entity(
        "image_transfer",
        transfer.id,
        links.actions("cancel", "extend", "finalize", "pause", "resume"),
        text("active", False),
        text("direction", "upload"),
        text("inactivity_timeout", 60),
        text("phase", transfer.phase),
        text("proxy_url", url),
        text("timeout_policy", "legacy"),
        text("transfer_url", url),
        text("transferred", 0),
        f'<image id="{attribute(transfer.disk)}"/>',
    )
