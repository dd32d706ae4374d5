"""Says what is wrong with the engine's URL, and never repeats a password that somebody has put into it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from ovirt_service.errors import UserError

_MODEL = "write https://ENGINE/ovirt-engine/api"


def check_url(url: str) -> None:
    """Raise `UserError` if this cannot be where an engine is."""
    _checked(url)


def exposes(url: str, *, insecure: bool) -> str:
    """Say how others can learn a password that is sent there; empty if they cannot, or have no need to."""
    found = _checked(url)
    if _is_this_machine(found.hostname or ""):
        return ""
    if found.scheme == "http":
        return "the password is sent in clear: write https:// into url under [engine]"
    if insecure:
        return "the password is sent to any server that answers: set ca_file under [engine], not insecure"
    return ""


def _checked(url: str) -> SplitResult:
    if any(mark in url for mark in "@?#"):
        raise UserError(
            "[engine] url: holds a user or a password: write them into username and password_file, and"
            " https://ENGINE/ovirt-engine/api into url"
        )
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError as error:
        raise UserError(f"[engine] url: {url!r}: {error}; {_MODEL}") from None
    if found.scheme not in ("https", "http") or not found.hostname or not url.isprintable() or port == 0:
        raise UserError(f"[engine] url: {url!r}: {_MODEL}")
    return found


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
