"""Sessions of the command line with a server: address, token, requests, and exit codes for its errors.

The server of a command is the first of these:

1. `--context`: a context of `roost login`, or `local` for the data folder
2. `--data`: the data folder of a server on this machine, which wrote its address and key to `cli.json` there
3. `ROOST_URL` with `ROOST_TOKEN`
4. `ROOST_CONTEXT`
5. `ROOST_DATA`
6. the current context: that of the last `roost login` or `roost contexts use`
7. the data folder `.roost`

Two that contradict each other are refused where a mistake is likely: 1 with 2, 3 with 2 or 4, and 4 with 2. A key is
sent to the URL that it belongs to only: redirects are not followed.
"""

import json
import os
import ssl
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast
from urllib.parse import quote, urlencode, urlsplit

import typer

from roost.cli.client.context_file import LOCAL, is_loopback, read_contexts, selected_context
from roost.cli.output.hints import HINTS
from roost.cli.output.output import ExitCode, exit_with_error, exit_with_unknown
from roost.core.machine.network_advice import (
    NOT_ENCRYPTED,
    NOT_RESOLVED,
    describe_certificate_error,
    describe_network_error,
)
from roost.core.sensitive import Sensitive

if TYPE_CHECKING:
    import httpx2 as httpx

Data = Annotated[Path | None, typer.Option("--data", help="The data folder of the server (default .roost).")]

_EXIT_CODES = {
    400: ExitCode.USAGE,
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    404: ExitCode.NOT_FOUND,
    431: ExitCode.USAGE,
}
_CONNECT_SECONDS = 5.0
_MAX_LINE = 500
TRANSFER_TIMEOUT_SECONDS = 600.0  # between two chunks; the server hashes large content before it answers


@dataclass(frozen=True)
class ServerSession:
    """The server to connect to, with its API key.

    domain: forms the host names of its addresses; asked from the server where it is None. host: the Host header, if
        not the host of `url`. key_advice: what to do if the server does not accept the key.
    """

    url: str
    token: Sensitive[str]
    domain: str | None = None
    host: str | None = None
    key_advice: str = ""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 180.0,
    ) -> "httpx.Response":
        """Send one request, with JSON or with bytes, and return its answer.

        Exits if there is none, the server does not accept the key, or the answer is a redirect.
        """
        with connection_errors(self.url), open_http_client(self, timeout_seconds) as client:
            return self._check_access(client.request(method, path, json=body, content=content, headers=headers))

    def call(
        self, method: str, path: str, body: Any = None, *, timeout_seconds: float = 180.0, not_found: str | None = None
    ) -> Any:
        """Send one request and return its JSON answer. Exits on an error status.

        not_found: the error message for a 404, instead of the server's own.
        """
        response = self.request(method, path, body, timeout_seconds=timeout_seconds)
        if not_found and response.status_code == 404:
            exit_with_error(not_found, ExitCode.NOT_FOUND)
        return self._parse_response(response)

    def send(self, path: str, content: Iterable[bytes], headers: Mapping[str, str]) -> Any:
        """Stream content to the server and return its JSON answer. Exits on an error status."""
        with connection_errors(self.url), open_http_client(self, TRANSFER_TIMEOUT_SECONDS) as client:
            response = self._check_access(client.post(path, content=content, headers=headers))
        return self._parse_response(response)

    @contextmanager
    def stream(self, path: str, *, host: str | None = None) -> "Generator[httpx.Response]":
        """Get `path` and yield the response before its content. Exits on an error status, and as `request` does.

        host: another host name of the server, which gets no credential.
        """
        session = self if host is None else replace(self, host=host)
        with connection_errors(self.url), open_http_client(session, TRANSFER_TIMEOUT_SECONDS) as client:
            if host is not None:
                del client.headers["Authorization"]
            with client.stream("GET", path) as response:
                self.check_stream(response, has_key=host is None)
                yield response

    def check_stream(self, response: "httpx.Response", *, has_key: bool = True) -> None:
        """Exit if the response, whose content was not read yet, is not a success."""
        if response.status_code >= 300:
            response.read()
            if has_key:
                self._check_access(response)
            exit_with_response(response)

    def storage_session(self) -> "ServerSession":
        """Return a session with the storage API of the same server."""
        located = self.locate()
        return replace(located, host=located.host_name("api"))

    def agent_session(self, agent_id: str) -> "ServerSession":
        """Return a session with an agent's own address, with its gateway token."""
        detail = self.call("GET", f"/v0/agents/{agent_id}")["agent"]
        token = detail["gatewayToken"] or self.call("GET", f"/v0/agents/{agent_id}/gateway-token")["token"]
        return replace(self, token=Sensitive(token), host=self.host_name(f"{agent_id}.agents"))

    def locate(self) -> "ServerSession":
        """Return the session with the server's domain. Exits if the server does not tell it."""
        if self.domain is not None:
            return self
        unknown = f"The server at {self.url} is not Roost: it does not tell its domain."
        found = self.call("GET", "/.well-known/roost", not_found=unknown)
        try:
            return replace(self, domain=str(found["domain"]))
        except (KeyError, TypeError):
            exit_with_error(unknown, ExitCode.UNREACHABLE)

    def _check_access(self, response: "httpx.Response") -> "httpx.Response":
        if response.status_code == 401:
            advice = f": the server does not accept the key; {self.key_advice}" if self.key_advice else ""
            exit_with_error(f"{error_message(response)}{advice}", ExitCode.NOT_ALLOWED)
        if response.is_redirect:
            exit_with_error(
                f"{self.url} redirects to {response.headers.get('Location', '')}. The key was not sent there: if that "
                "is your server, use its address.",
                ExitCode.UNREACHABLE,
            )
        return response

    def _parse_response(self, response: "httpx.Response") -> Any:
        if response.status_code >= 400:
            exit_with_response(response)
        try:
            return response.json()
        except ValueError:
            exit_with_error(f"The server at {self.url} is not Roost: its answer is not JSON.", ExitCode.UNREACHABLE)

    def find_agent(self, name: str) -> Mapping[str, Any]:
        """Return the agent with that id, or the only agent with that name. Exits if there is none or several."""
        agents = self.call("GET", "/v0/agents")["agents"]
        found = [agent for agent in agents if name in (agent["agentId"], agent["name"])]
        exact = [agent for agent in found if agent["agentId"] == name] or found
        if not exact:
            exit_with_unknown("agent", name, [agent["name"] for agent in agents], "roost agents list")
        if len(exact) > 1:
            ids = ", ".join(agent["agentId"] for agent in exact)
            exit_with_error(f"{len(exact)} agents have the name {name!r}: use the id ({ids}).", ExitCode.USAGE)
        return exact[0]

    def fetch_pages(self, path: str, field: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the records of a list that has pages with a cursor. field: that of a page with its records."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.call("GET", f"{path}?{urlencode({**query, **({'cursor': cursor} if cursor else {})})}")
            yield from page[field]
            cursor = page["nextCursor"]

    def agent_path(self, name: str) -> str:
        """Return the path of the agent with that id or name. Exits as `find_agent` does."""
        return f"/v0/agents/{self.find_agent(name)['agentId']}"

    def host_name(self, name: str) -> str:
        """Return the host and port of a name below the domain: `api`, `<agent id>.agents`."""
        import httpx2 as httpx  # slow to import

        port = httpx.URL(self.url).port
        return f"{name}.{self.locate().domain}" + (f":{port}" if port else "")


def drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body that are given."""
    return {name: value for name, value in fields.items() if value is not None}


def path_segment(value: str) -> str:
    """Quote an argument as one segment of a path."""
    return quote(value, safe="")


def open_http_client(server: ServerSession, timeout_seconds: float) -> "httpx.Client":
    """Create a client that authenticates to the session's server. `timeout_seconds` is the limit of a silence."""
    import httpx2 as httpx  # slow to import, and not needed for help and most completions

    def replace_host(request: httpx.Request) -> None:
        """Connect to this machine for names that many systems cannot resolve; header and TLS keep the name."""
        host, _ = connect_address(str(request.url))
        if host != request.url.host:
            request.extensions = {"sni_hostname": request.url.host, **request.extensions}
            request.url = request.url.copy_with(host=host)

    headers = {"Authorization": f"Bearer {server.token.reveal()}"} | ({"Host": server.host} if server.host else {})
    return httpx.Client(
        base_url=server.url,
        headers=headers,
        timeout=httpx.Timeout(timeout_seconds, connect=_CONNECT_SECONDS),
        trust_env=False,
        verify=trusted_authorities(server.url),
        event_hooks={"request": [replace_host]},
    )


def trusted_authorities(url: str) -> ssl.SSLContext | bool:
    """Return the certificate authorities in `SSL_CERT_FILE` for HTTPS, or True for the default ones.

    For plain HTTP, return an empty context: loading the default authorities takes 20 ms.
    """
    if not url.startswith("https://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    path = os.environ.get("SSL_CERT_FILE")
    if not path:
        return True
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        exit_with_error(f"SSL_CERT_FILE: {path} could not be read: {error.strerror or error}", ExitCode.USAGE)


def load_session(data: Path | None) -> ServerSession:
    """Return the session that options, the environment, a context or a data folder name. Exits if there is none."""
    return load_remote_session(data) or _load_folder(data)


def load_storage(data: Path | None) -> ServerSession:
    """Return the session with the storage API of that server."""
    return load_session(data).storage_session()


def load_remote_session(data: Path | None) -> ServerSession | None:
    """Return the session that the environment or a context names, None if a data folder is meant."""
    option = selected_context()
    if option is not None:
        if data is not None and option != LOCAL:
            _exit_with_conflict("--context", "--data", "leave out one of them.")
        return _load_context(option)
    url, token, name = (os.environ.get(variable) for variable in ("ROOST_URL", "ROOST_TOKEN", "ROOST_CONTEXT"))
    if bool(url) != bool(token):
        exit_with_error("ROOST_URL and ROOST_TOKEN belong together: set both or neither.", ExitCode.USAGE)
    if url and data is not None:
        _exit_with_conflict("ROOST_URL", "--data", "unset ROOST_URL, or leave out --data.")
    if url and name:
        _exit_with_conflict("ROOST_URL", "ROOST_CONTEXT", "unset one of them.")
    if name and name != LOCAL and data is not None:
        _exit_with_conflict("ROOST_CONTEXT", "--data", "unset ROOST_CONTEXT, or leave out --data.")
    if url and token:
        return ServerSession(url.rstrip("/"), Sensitive(token), key_advice="check ROOST_TOKEN")
    if name or data is not None or os.environ.get("ROOST_DATA"):
        return _load_context(name or LOCAL)
    return _load_context(read_contexts().current or LOCAL)


def _exit_with_conflict(one: str, other: str, advice: str) -> NoReturn:
    exit_with_error(f"{one} names one server and {other} another: {advice}", ExitCode.USAGE)


def _load_context(name: str) -> ServerSession | None:
    """Return the session of a context, None for the data folder. Exits if there is no such context."""
    if name == LOCAL:
        return None
    context = read_contexts().get(name)
    advice = f"log in again with `roost login {context.url} --name {name}`"
    return ServerSession(context.url, context.key, key_advice=advice)


def _load_folder(data: Path | None) -> ServerSession:
    from roost import config  # slow to import, and not needed for other servers

    path = config.load_settings(data=data).data / "cli.json"
    try:
        found = json.loads(path.read_text())
        advice = "the next `roost up` makes another key"
        return ServerSession(found["url"], Sensitive(found["token"]), found["domain"], key_advice=advice)
    except FileNotFoundError:
        exit_with_error(
            f"No server has used {path.parent} yet. Start one with `roost up`, name a server's folder with --data, or "
            "log in to a server elsewhere with `roost login URL`.",
            ExitCode.UNREACHABLE,
        )
    except OSError as error:
        exit_with_error(f"{path}: {error.strerror}", ExitCode.NOT_ALLOWED)
    except (ValueError, KeyError, TypeError):
        exit_with_error(f"{path} is damaged; the next `roost up` rewrites it.", ExitCode.UNREACHABLE)


def exit_with_response(response: "httpx.Response") -> NoReturn:
    """Exit with the server's error message."""
    exit_with_error(error_message(response), _EXIT_CODES.get(response.status_code, ExitCode.FAILED))


def error_message(response: "httpx.Response") -> str:
    """Return the server's error message and what explains it: a failed agent's reason, a detail or a hint."""
    try:
        body = response.json()
        message = error_text(body["error"])
        if reason := body.get("agent", {}).get("statusReason"):
            message = f"{message}. {reason}"
        detail = json.loads(response.headers.get("X-Error-Detail") or "null")
        if detail and detail != message:
            message = f"{message}: {detail}"
        elif hint := HINTS.get(response.headers.get("X-Error-Code", "")):
            message += f"{';' if ': ' in message else ':'} {hint}"
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"The server answered {response.status_code}{_text_error(response)}."
    return message


def _text_error(response: "httpx.Response") -> str:
    """Return the first line of a plain-text error body, as storage gateways send it."""
    is_text = response.headers.get("Content-Type", "").startswith("text/plain")
    line, _, _ = response.text.partition("\n")
    return f": {line[:_MAX_LINE]}" if is_text and line else ""


def error_text(error: Any) -> str:
    """Return the message of an error body: a string in Roost's API, an object in OpenAI's."""
    return str(cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error)


@contextmanager
def connection_errors(url: str) -> Generator[None]:
    """Exit with an error message when the connection to `url` fails."""
    import httpx2 as httpx

    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        exit_with_error(f"{url!r} is not an HTTP or HTTPS URL.", ExitCode.USAGE)
    except httpx.ConnectError as error:
        if certificate := describe_certificate_error(error):
            exit_with_error(
                f"The certificate of {url} is not accepted: {certificate}. If its authority is your own, name the "
                "authority's file in SSL_CERT_FILE.",
                ExitCode.UNREACHABLE,
            )
        exit_with_error(_describe_unreachable(url, error), ExitCode.UNREACHABLE)
    except httpx.TimeoutException:
        exit_with_error(
            f"The server at {url} did not answer in time: it is busy, or a firewall drops the connection. The request "
            "may have been done.",
            ExitCode.UNREACHABLE,
        )
    except httpx.HTTPError as error:
        exit_with_error(f"The connection to {url} broke: {describe_network_error(error)}.", ExitCode.UNREACHABLE)


def connect_address(url: str) -> tuple[str, int]:
    """Return host and port to connect to for a URL; names below `localhost` are this machine (RFC 6761 6.3)."""
    address = urlsplit(url)
    host = address.hostname or ""
    port = address.port or (443 if address.scheme == "https" else 80)
    return "localhost" if host.endswith(".localhost") else host, port


def _describe_unreachable(url: str, error: BaseException) -> str:
    """Return why a server is not reached, and what to do about it."""
    reason = describe_network_error(error)
    if reason == NOT_RESOLVED:
        advice = "Check the address, and your connection to the internet."
    elif reason == NOT_ENCRYPTED:
        advice = "If it serves no HTTPS, its address begins with http://."
    elif is_loopback(urlsplit(url).hostname or ""):
        advice = "Start one with `roost up`."
    else:
        advice = "Check the address, and that the server runs; `roost contexts list` shows the servers you know."
    return f"No server answers at {url}: {reason}. {advice}"
