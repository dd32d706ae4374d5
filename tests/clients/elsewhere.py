"""The rest of the internet, on loopback: a proxy behind which every name is one server that is no engine."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Proxy(BaseHTTPRequestHandler):
    """Plays the server itself, for every name."""

    tls: ssl.SSLContext

    def do_CONNECT(self) -> None:
        self.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            with self.tls.wrap_socket(self.connection, server_side=True) as inside:
                inside.recv(65536)
                inside.sendall(_PAGE)
        except OSError:
            pass  # who asked has gone
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>Example</html>"


@contextmanager
def rest_of_the_internet(folder: Path) -> Iterator[str]:
    """Serve it with the certificate of the engine in this folder; gives the proxy's URL."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "chain.pem", folder / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (_Proxy,), {"tls": tls})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
