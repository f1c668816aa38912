"""Address and credentials of a Kubernetes API server: the service account of this pod, or a kubeconfig file.

Files are read again each minute and after a refusal, because tokens, certificates and authorities rotate:
https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/,
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.core.yaml_document import InvalidYamlDocument, parse_yaml
from roost.drivers.runtime.contract import RuntimeFailed
from roost.net.addresses import is_loopback

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_SECONDS = 60.0
_PLUGINS = ("exec", "auth-provider")

Source = Sensitive[bytes] | Path
"""Content of a credential, or a file that has it and may change."""


class KubernetesMisconfigured(RuntimeFailed):
    """Address or credentials of the API server are missing or wrong; `message` says where."""


@dataclass(frozen=True)
class ClusterCredentials:
    """What proves both ends to each other; without an authority that of the operating system counts."""

    authority: Source | None = None
    certificate: Source | None = None
    key: Source | None = None
    token: Source | None = None


class ClusterAccess:
    """One API server and who this server is there.

    url: `https://host:port`, possibly with a path. namespace: of all objects of the runtime. server_name: expected in
    the server's certificate in place of the host. context: for https; files are loaded into it again when they change,
    which counts for new connections.
    """

    def __init__(
        self, url: str, namespace: str, credentials: ClusterCredentials, server_name: str | None = None
    ) -> None:
        """Read the credentials. Raises KubernetesMisconfigured."""
        self.url, self.namespace, self._credentials = url.rstrip("/"), namespace, credentials
        parts = urlsplit(self.url)
        if not parts.hostname or parts.username or parts.scheme not in ("http", "https"):
            raise KubernetesMisconfigured("The Kubernetes API server must be a URL `https://host:port`")
        if parts.scheme == "http" and parts.hostname != "localhost" and not is_loopback(parts.hostname):
            raise KubernetesMisconfigured(f"The Kubernetes API server must have an https URL, got {self.url}")
        self.server_name = server_name or parts.hostname
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._loaded: dict[str, Sensitive[bytes]] = {}
        self._read_at: float | None = None
        if credentials.authority is None:
            self.context.load_default_certs()
        try:
            self._load()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise KubernetesMisconfigured(f"The credentials for Kubernetes cannot be read: {error}") from None

    def headers(self) -> dict[str, str]:
        """Return the headers that name this server, with a token that is at most a minute old."""
        if self._read_at is None or clock.monotonic_seconds() - self._read_at > _REREAD_SECONDS:
            with suppress(OSError, ValueError):  # half-written; what was read before may still be right
                self._load()
        token = self._loaded.get("token")
        return {} if token is None else {"Authorization": f"Bearer {token.reveal().decode().strip()}"}

    def expire(self) -> None:
        """Read the files again before the next request, because the server refused what they had."""
        self._read_at = None

    def _load(self) -> None:
        self._read_at = clock.monotonic_seconds()
        sources: dict[str, Source | None] = vars(self._credentials)
        given = {name: source for name, source in sources.items() if source is not None}
        found = {name: Sensitive(one.read_bytes()) if isinstance(one, Path) else one for name, one in given.items()}
        changed = {name for name, content in found.items() if content != self._loaded.get(name)}
        if "token" in changed:
            found["token"].reveal().decode("ascii")  # or it can be no header
        if "authority" in changed:
            self.context.load_verify_locations(cadata=found["authority"].reveal().decode())
        if changed & {"certificate", "key"}:
            fd = os.memfd_create("certificate")  # the module reads keys from files only
            try:
                os.write(fd, found["key"].reveal() + b"\n" + found["certificate"].reveal())
                self.context.load_cert_chain(f"/proc/self/fd/{fd}")
            finally:
                os.close(fd)
        self._loaded = found


def load_service_account(url: str | None, namespace: str = "", folder: Path = _SERVICE_ACCOUNT) -> ClusterAccess:
    """Return the access of the pod in which this server runs, by default to its namespace.

    Raises KubernetesMisconfigured.
    """
    if url is None or not (folder / "token").is_file():
        raise KubernetesMisconfigured("This server has no service account of a pod: name a kubeconfig file")
    try:
        namespace = namespace or (folder / "namespace").read_text().strip()
    except OSError as error:
        raise KubernetesMisconfigured(f"The service account has no namespace: {error}") from None
    return ClusterAccess(url, namespace, ClusterCredentials(authority=folder / "ca.crt", token=folder / "token"))


def load_kubeconfig(path: Path, namespace: str = "", context: str | None = None) -> ClusterAccess:
    """Return the access that a kubeconfig file gives, by default by its current context and to its namespace.

    Raises KubernetesMisconfigured, also for credential plugins, which are programs.
    """
    try:
        config = parse_yaml(path.read_text()).content
    except (OSError, UnicodeError) as error:
        raise KubernetesMisconfigured(f"The kubeconfig {path} cannot be read: {error}") from None
    except InvalidYamlDocument as error:
        raise KubernetesMisconfigured(f"The kubeconfig {path} is malformed: {error.message}") from None
    return _KubeconfigReader(path, config).read(namespace, context)


class _KubeconfigReader:
    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self._path, self._config = path, config

    def read(self, namespace: str, context: str | None) -> ClusterAccess:
        chosen = self._entry("context", context or str(self._config.get("current-context") or ""))
        cluster = self._entry("cluster", str(chosen.get("cluster") or ""))
        user: Mapping[str, Any] = self._entry("user", str(chosen["user"])) if chosen.get("user") else {}
        if cluster.get("insecure-skip-tls-verify") == "true":
            raise self._error("insecure-skip-tls-verify is not supported: give certificate-authority")
        if plugin := next((name for name in _PLUGINS if user.get(name)), None):
            raise self._error(f"the user has a credential plugin ({plugin}): give a token or a client certificate")
        certificate, key = self._source(user, "client-certificate"), self._source(user, "client-key")
        if (certificate is None) != (key is None):
            raise self._error("client-certificate and client-key must both be given")
        authority, token = self._source(cluster, "certificate-authority"), self._token(user)
        credentials = ClusterCredentials(authority, certificate, key, token)
        url, name = str(cluster.get("server") or ""), cluster.get("tls-server-name")
        namespace = namespace or str(chosen.get("namespace") or "default")
        return ClusterAccess(url, namespace, credentials, str(name) if name else None)

    def _entry(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return the entry of a name in the list of its kind."""
        entries: object = self._config.get(f"{kind}s")
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            if isinstance(entry, dict) and (found := cast("dict[str, object]", entry)).get("name") == name:
                value = found.get(kind)
                return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        raise self._error(f"there is no {kind} {name!r}")

    def _source(self, entry: Mapping[str, Any], name: str) -> Source | None:
        if data := entry.get(f"{name}-data"):
            try:
                return Sensitive(base64.b64decode(str(data), validate=True))
            except ValueError:
                raise self._error(f"{name}-data is no base64") from None
        return self._path.parent / str(entry[name]) if entry.get(name) else None

    def _token(self, user: Mapping[str, Any]) -> Source | None:
        if user.get("tokenFile"):
            return self._path.parent / str(user["tokenFile"])
        return Sensitive(str(user["token"]).encode()) if user.get("token") else None

    def _error(self, reason: str) -> KubernetesMisconfigured:
        return KubernetesMisconfigured(f"The kubeconfig {self._path}: {reason}")
