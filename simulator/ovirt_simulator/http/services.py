"""Pages besides the API that need no log-in: whether the engine lives, and its certificate."""

from __future__ import annotations

from pathlib import Path

from werkzeug import Request, Response

from ovirt_simulator.http import answers

HEALTH, CERTIFICATES = "/ovirt-engine/services/health", "/ovirt-engine/services/pki-resource"

_RESOURCES = {"ca-certificate": "X509-PEM-CA", "engine-certificate": "X509-PEM"}
_TYPES = {"X509-PEM-CA": "application/x-x509-ca-cert", "X509-PEM": "application/x-x509-cert"}
_END = "-----END CERTIFICATE-----\n"


def health() -> Response:
    return Response("DB Up!Welcome to Health Status!", content_type="text/html")


def pki_resource(request: Request, chain: Path | None) -> Response:
    """Give the certificate of the engine, first of its chain, or that of who issued it, the last.

    There is none without TLS; keys in the form of SSH are left out.
    """
    resource = request.args.get("resource", "")
    wanted = request.args.get("format", _RESOURCES.get(resource, ""))
    if resource not in _RESOURCES or wanted not in _TYPES:
        return answers.page(400)
    if chain is None:
        return answers.page(404)
    certificates = [text + _END for text in chain.read_text().split(_END)[:-1]]
    certificate = certificates[0 if resource == "engine-certificate" else -1]
    return Response(certificate.strip() + "\n", content_type=_TYPES[wanted])
