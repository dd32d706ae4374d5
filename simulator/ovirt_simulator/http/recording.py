"""A recorded engine: a folder of answers, one file a request, served byte for byte as they stand."""

from __future__ import annotations

from pathlib import Path

from werkzeug import Request, Response

from ovirt_service.errors import UserError
from ovirt_simulator.http import markup
from ovirt_simulator.http.documents import COLLECTIONS, minimal_api
from ovirt_simulator.http.sso import User


class Recording:
    """Answers GETs below /ovirt-engine/api from a folder; parameters, `follow` among them, are ignored.

    `hosts_<id>_statistics.xml` answers /hosts/<id>/statistics. A root collection without a file is empty, any
    other address without one is not found, and nothing can be changed.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder; a recording is a folder of .xml files")
        self._documents = {file.stem: file.read_bytes() for file in sorted(folder.glob("*.xml"))}
        if not self._documents:
            raise UserError(f"{folder}: no .xml files; a recording has one for each request, such as vms.xml")

    def answer(self, request: Request, path: str, user_name: str, user: User) -> Response:
        """Answer a request; `path` is what follows /ovirt-engine/api."""
        if request.method != "GET":
            return markup.page(405)
        segments = [segment for segment in path.split("/") if segment]
        recorded = self._documents.get("_".join(segments))
        if recorded is not None:
            return Response(recorded, content_type=markup.XML)
        if not segments:
            return markup.document(minimal_api())
        if len(segments) == 1 and segments[0] in COLLECTIONS:
            return markup.document(markup.collection(COLLECTIONS[segments[0]], []))
        return markup.absent().response
