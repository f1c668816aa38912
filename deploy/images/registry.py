"""A registry's HTTP API (OCI distribution): push and pull of images, without a daemon."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urljoin

import httpx2
from layout import INDEX, LAYER, MANIFEST, Blob, Image, ImageLayout

_LISTS = (INDEX, "application/vnd.docker.distribution.manifest.list.v2+json")
_ACCEPTED = ", ".join([MANIFEST, "application/vnd.docker.distribution.manifest.v2+json", *_LISTS])
_REFERENCE = re.compile(r"(localhost|[\w.-]+\.[\w.-]+|[\w.-]+:\d+)/([a-z0-9][\w./-]*)(?::([\w.-]+)|@(sha256:\w{64}))?")
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+)(:\d+)?")
_BLOCK = 1 << 20
_EMPTY = b"{}"
_ARTIFACT = "application/spdx+json"


class RegistryFailed(Exception):  # noqa: N818 - named as problems of the package are
    """A registry refused or did not answer."""


def is_reference(text: str) -> bool:
    """Return whether a text names an image in a registry, with its host."""
    return _REFERENCE.fullmatch(text) is not None


class Repository:
    """One repository of a registry, `host/name:tag`. Credentials are those of `docker login` or `podman login`.

    Loopback is reached by plain HTTP. Methods raise RegistryFailed.
    """

    def __init__(self, reference: str) -> None:
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            raise RegistryFailed(f"{reference!r} is not an image of a registry, like registry.example.com/name:tag")
        host, self._name, tag, digest = found.groups()
        self.tag = digest or tag or "latest"
        self._credentials, self._headers = _find_credentials(host), dict[str, str]()
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        self._base = f"{scheme}://{host}/v2/{self._name}/"
        self._client = httpx2.Client(timeout=300, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def push_image(self, layout: ImageLayout, manifest: Blob, sbom: bytes) -> None:
        """Push an image's missing blobs, its manifest, and its SBOM, which refers to it."""
        found = layout.read(manifest.digest)
        for blob in (found["config"], *found["layers"]):
            self._push_blob(blob["digest"], layout.blob_path(blob["digest"]))
        self._put_manifest(self.tag, layout.blob_path(manifest.digest).read_bytes(), MANIFEST)
        self._push_sbom(layout, manifest, sbom)

    def pull_image(self, layout: ImageLayout, architecture: str) -> Image:
        """Pull an image for an architecture; every blob is compared with its digest."""
        manifest = self._get_manifest(self.tag)
        if manifest.get("mediaType") in _LISTS:
            fitting = [
                entry["digest"]
                for entry in manifest["manifests"]
                if entry.get("platform", {}).get("os") == "linux"
                and entry["platform"].get("architecture") == architecture
            ]
            if not fitting:
                raise RegistryFailed(f"{self._name}:{self.tag} has no image for linux/{architecture}")
            manifest = self._get_manifest(fitting[0])
        self._pull_blob(manifest["config"]["digest"], layout)
        config = layout.read(manifest["config"]["digest"])
        layers = [
            Blob(LAYER, layer["digest"], self._pull_blob(layer["digest"], layout), diff_id)
            for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True)
            if "gzip" in layer["mediaType"]
        ]
        if len(layers) < len(manifest["layers"]):
            raise RegistryFailed(f"{self._name}:{self.tag} has a layer that is not compressed with gzip")
        return Image(config, layers)

    def pull_sbom(self, digest: str) -> bytes:
        """Return the SBOM that refers to the image with this digest."""
        listed = self._get_manifest(digest.replace(":", "-"))
        artifact = self._get_manifest(listed["manifests"][0]["digest"])
        return self._send("GET", f"blobs/{artifact['layers'][0]['digest']}").content

    def _push_sbom(self, layout: ImageLayout, image: Blob, sbom: bytes) -> None:
        """Push an artifact with the image as its subject, and the list of such by the specification's tag."""
        empty = layout.add_bytes(_EMPTY, "application/vnd.oci.empty.v1+json")
        document = layout.add_bytes(sbom, _ARTIFACT)
        for blob in (empty, document):
            self._push_blob(blob.digest, layout.blob_path(blob.digest))
        artifact = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": _ARTIFACT,
            "config": empty.descriptor(),
            "layers": [document.descriptor()],
            "subject": image.descriptor(),
        }
        pushed = layout.add_json(artifact, MANIFEST)
        self._put_manifest(pushed.digest, layout.blob_path(pushed.digest).read_bytes(), MANIFEST)
        listed = [{**pushed.descriptor(), "artifactType": _ARTIFACT}]
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).encode()
        self._put_manifest(image.digest.replace(":", "-"), index, INDEX)

    def _push_blob(self, digest: str, path: Path) -> None:
        if self._send("HEAD", f"blobs/{digest}", missing_ok=True).status_code == httpx2.codes.OK:
            return
        location = urljoin(self._base, self._send("POST", "blobs/uploads/").headers["location"])
        address = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(path.stat().st_size)}
        self._send("PUT", address, headers, path)

    def _pull_blob(self, digest: str, layout: ImageLayout) -> int:
        target = layout.blob_path(digest)
        if not target.exists():
            self._send("HEAD", f"blobs/{digest}")  # gets a token first if it needs one
            draft, found = target.with_suffix(".draft"), hashlib.sha256()
            with (
                self._client.stream("GET", urljoin(self._base, f"blobs/{digest}"), headers=self._headers) as response,
                draft.open("wb") as file,
            ):
                for block in response.iter_bytes(_BLOCK):
                    found.update(block)
                    file.write(block)
            if f"sha256:{found.hexdigest()}" != digest:
                raise RegistryFailed(f"The registry sent another blob than {digest}")
            draft.rename(target)
        return target.stat().st_size

    def _get_manifest(self, name: str) -> dict[str, Any]:
        content = self._send("GET", f"manifests/{name}", {"Accept": _ACCEPTED}).content
        if ":" in name and f"sha256:{hashlib.sha256(content).hexdigest()}" != name:
            raise RegistryFailed(f"The registry sent another manifest than {name}")
        return json.loads(content)

    def _put_manifest(self, name: str, content: bytes, media_type: str) -> None:
        self._send("PUT", f"manifests/{name}", {"Content-Type": media_type}, content)

    def _send(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | Path | None = None,
        *,
        missing_ok: bool = False,
    ) -> httpx2.Response:
        for attempt in ("first", "authenticated"):
            content = _read_blocks(body) if isinstance(body, Path) else body
            try:
                response = self._client.request(
                    method, urljoin(self._base, address), headers={**self._headers, **(headers or {})}, content=content
                )
            except httpx2.HTTPError as error:
                raise RegistryFailed(f"{self._base} does not answer: {error}") from error
            if response.status_code != httpx2.codes.UNAUTHORIZED or attempt == "authenticated":
                break
            self._authenticate(response.headers.get("www-authenticate", ""))
        if response.is_success or (missing_ok and response.status_code == httpx2.codes.NOT_FOUND):
            return response
        raise RegistryFailed(f"{method} {response.url}: {response.status_code} {response.text[:300]}")

    def _authenticate(self, challenge: str) -> None:
        """Answer a challenge: with the credentials themselves, or with a token that they get."""
        basic = {"Authorization": f"Basic {self._credentials}"} if self._credentials else {}
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() != "bearer":
            self._headers = basic
            return
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        scope = f"repository:{self._name}:pull" + (",push" if self._credentials else "")
        query = {"service": fields.get("service", ""), "scope": scope}
        answer = self._client.get(fields["realm"], params=query, headers=basic)
        if not answer.is_success:
            raise RegistryFailed(f"{fields['realm']} gives no token: {answer.status_code}")
        token = answer.json().get("token") or answer.json()["access_token"]
        self._headers = {"Authorization": f"Bearer {token}"}


def _read_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            yield block


def _find_credentials(host: str) -> str:
    """Return what `docker login` or `podman login` saved in a file, base64 of user and password; else an empty text."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")
    docker = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    for file in (docker, Path(folder) / "containers/auth.json"):
        if file.is_file():
            entry = json.loads(file.read_bytes()).get("auths", {}).get(host, {})
            if "username" in entry:
                return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()
            if "auth" in entry:
                return entry["auth"]
    return ""
