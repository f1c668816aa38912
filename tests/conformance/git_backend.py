"""`git http-backend` behind a small CGI server on loopback: a Git server of somebody else."""

import os
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_CHUNK = 256 * 1024
_BACKEND = {"GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "bench", "PATH": os.environ["PATH"]}
_SETTINGS = {"safe.directory": "*", "http.receivepack": "true", "receive.fsckObjects": "true"}


@contextmanager
def run_backend(folder: Path, **settings: str) -> Generator[str]:
    """Serve the repositories in a folder with `git http-backend` and further settings of Git; yield the URL."""
    folder.mkdir(exist_ok=True)
    handler = type("Handler", (_BackendHandler,), {"folder": folder, "settings": {**_SETTINGS, **settings}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _BackendHandler(BaseHTTPRequestHandler):
    """A CGI server for one program (RFC 3875)."""

    protocol_version = "HTTP/1.1"
    folder: Path
    settings: Mapping[str, str]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            **_BACKEND,
            "GIT_PROJECT_ROOT": str(self.folder),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_CONFIG_COUNT": str(len(self.settings)),
            **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(self.settings)},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(self.settings.values())},
        }
        with subprocess.Popen(
            ["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as backend:
            feeding = threading.Thread(target=self._feed, args=(backend,))
            feeding.start()
            self._respond(backend)
            feeding.join()

    do_POST = do_GET  # noqa: N815 - the name that the server looks for

    def _feed(self, backend: "subprocess.Popen[bytes]") -> None:
        assert backend.stdin is not None
        with backend.stdin as stdin:
            if self.headers.get("Transfer-Encoding") != "chunked":
                stdin.write(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                return
            while size := int(self.rfile.readline(), 16):
                stdin.write(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()

    def _respond(self, backend: "subprocess.Popen[bytes]") -> None:
        assert backend.stdout is not None
        fields: dict[str, str] = {}
        while line := backend.stdout.readline().decode().strip():
            name, _, value = line.partition(": ")
            fields[name] = value
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in {**fields, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        while chunk := backend.stdout.read1(_CHUNK):  # type: ignore[attr-defined] - it is buffered
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Stay silent."""
