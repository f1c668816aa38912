"""The requests of the Kubernetes API: paths, authorization, verbs, and answers that are checked."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tests.support.kubernetes import errors
from tests.support.kubernetes.access import AccessControl, Attributes
from tests.support.kubernetes.errors import ApiError, FieldError
from tests.support.kubernetes.http_server import Connection, Request, Response
from tests.support.kubernetes.incoming import parse_body
from tests.support.kubernetes.lists import Lister, render_list
from tests.support.kubernetes.pod_requests import PodRequests
from tests.support.kubernetes.protobuf import CONTENT_TYPE, decode_protobuf
from tests.support.kubernetes.resources import Object, Resource, find_document
from tests.support.kubernetes.schemas import Decoder, check_definition, check_object, group_document
from tests.support.kubernetes.store import Store, Stored
from tests.support.kubernetes.writes import (
    POLICIES,
    WriteOptions,
    Writer,
    Written,
    returns_object,
    timestamp,
)

_BODY_TYPES = {"", "application/json", "application/yaml"}
_PLAIN = "text/plain; charset=utf-8"
_OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_NO_KINDS = b"\n\x032.0"
"""An OpenAPI 2.0 document in Protocol Buffers: kubectl looks there for kinds that OpenAPI 3.0 lacks."""


@dataclass(frozen=True)
class _Target:
    """What a path names; `verb` is what the method does there."""

    resource: Resource
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace if self.resource.namespaced else "", self.name)

    @property
    def attributes(self) -> Attributes:
        one = self.resource
        return Attributes(self.verb, one.group, one.plural, self.subresource, self.namespace, self.name)


class Api:
    """Answers requests. `failures` collects what went wrong in the fake itself; a test must end with none."""

    def __init__(self, store: Store, access: AccessControl, writer: Writer, lister: Lister, pods: PodRequests) -> None:
        self._store, self._access, self._writer, self._lister, self._pods = store, access, writer, lister, pods
        self.failures: list[Exception] = []

    async def handle(self, request: Request, connection: Connection) -> Response | None:
        """Answer a request, or stream the answer and return None."""
        try:
            self._access.authenticate(request)
            resources = self._store.resources()
            target = _find_target(request, resources)
            if target is None:
                return self._answer_path(request, resources)
            self._access.require(request, target.attributes)
            return await self._dispatch(target, request, connection)
        except ApiError as error:
            check_object(error.status())
            retry = (error.details or {}).get("retryAfterSeconds")
            headers = {"Retry-After": str(retry), **error.headers} if retry else error.headers
            return _answer(error.status(), error.code, headers=headers)
        except ConnectionError:
            raise
        except Exception as error:
            self.failures.append(error)
            raise

    def _answer_path(self, request: Request, resources: Collection[Resource]) -> Response:
        self._access.require(request, Attributes(_method_verb(request.method), path=request.path))
        if request.path in {"/readyz", "/livez", "/healthz"}:
            return Response(200, b"ok", _PLAIN)
        if request.path == "/openapi/v3":
            names = dict.fromkeys(
                "api/v1" if one.api_version == "v1" else f"apis/{one.api_version}" for one in resources
            )
            return _answer({"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash=0"} for name in names}})
        if request.path == "/openapi/v2":
            return Response(200, _NO_KINDS, _OPENAPI_V2)
        if request.path.startswith("/openapi/v3/"):
            version = request.path.removeprefix("/openapi/v3/").removeprefix("apis/").removeprefix("api/")
            if any(one.api_version == version for one in resources):
                return _answer(group_document(version, resources))
        document = find_document(request.path.rstrip("/"), resources)
        if document is None:
            return Response(404, b"404 page not found\n", _PLAIN)
        if "kind" in document:
            check_definition(f"io.k8s.apimachinery.pkg.apis.meta.v1.{document['kind']}", document)
        return _answer(document)

    async def _dispatch(self, target: _Target, request: Request, connection: Connection) -> Response | None:
        if target.subresource == "token" and target.verb == "create":
            return self._issue_token(target, request)
        if target.subresource not in {"", "status"}:
            return await self._pods.handle(target.subresource, target.verb, target.key, request, connection)
        if target.resource.plural == "selfsubjectaccessreviews":
            return self._review_access(request)
        match target.verb:
            case "get":
                found = self._store.find(target.resource, target.key)
                if found is None:
                    raise errors.not_found(target.resource, target.name)
                return Response(200, found.full + b"\n")
            case "list":
                return Response(200, self._lister.list_objects(target.resource, target.key[0], request))
            case "watch":
                await self._lister.watch(target.resource, target.key[0], target.name, request, connection)
                return None
            case "create" if not target.name and (target.namespace or not target.resource.namespaced):
                return _answer_write(
                    self._writer.create(
                        target.resource,
                        target.key[0],
                        _document(target.resource.kind, request),
                        _options(target, request),
                    )
                )
            case "update" if target.name:
                self._authorize_creation(target, request)
                return _answer_write(
                    self._writer.update(
                        target.resource, target.key, _document(target.resource.kind, request), _options(target, request)
                    )
                )
            case "patch" if target.name:
                if request.headers.get("content-type", "").startswith("application/apply-patch"):
                    self._authorize_creation(target, request)
                return self._patch(target, request)
            case "delete":
                return self._delete(target, request)
            case "deletecollection":
                return self._delete_collection(target, request)
            case _:
                raise errors.method_not_allowed()

    def _authorize_creation(self, target: _Target, request: Request) -> None:
        if self._store.find(target.resource, target.key) is None and not target.subresource:
            self._access.require(request, replace(target.attributes, verb="create"))

    def _patch(self, target: _Target, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0]
        options = _options(target, request)
        if kind.startswith("application/apply-patch"):
            options = replace(options, manager=request.first("fieldManager"))
        elif options.force:
            error = FieldError("force", "Forbidden", "may not be specified for non-apply patch")
            raise errors.invalid_options("PatchOptions", error)
        return _answer_write(self._writer.patch(target.resource, target.key, kind, request.body, options))

    def _delete(self, target: _Target, request: Request) -> Response:
        options, dry_run = _delete_options(request)
        item, gone = self._writer.delete(target.resource, target.key, options, dry_run=dry_run)
        if returns_object(target.resource, gone=gone):
            return _answer(item)
        one, metadata = target.resource, item["metadata"]
        details = {"name": metadata["name"], "group": one.group, "kind": one.plural, "uid": metadata["uid"]}
        details = {key: value for key, value in details.items() if value}
        return _answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    def _delete_collection(self, target: _Target, request: Request) -> Response:
        options, dry_run = _delete_options(request)
        found = self._lister.select(target.resource, target.key[0], request)
        version = str(self._store.version)
        for item in found:
            key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            if self._store.find(target.resource, key):
                self._writer.delete(target.resource, key, options, dry_run=dry_run)
        bodies = [Stored(item, 0).body for item in found]
        return Response(200, render_list(target.resource, {"resourceVersion": version}, bodies))

    def _issue_token(self, target: _Target, request: Request) -> Response:
        if self._store.find(target.resource, target.key) is None:
            raise errors.not_found(target.resource, target.name)
        item = Decoder("authentication.k8s.io/v1", "TokenRequest").decode(_document("TokenRequest", request))
        seconds = item.get("spec", {}).get("expirationSeconds", 3600)
        spec = {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": seconds, **item.get("spec", {})}
        status = {"token": self._access.issue_token(*target.key), "expirationTimestamp": timestamp(seconds)}
        kind = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        metadata = {"name": target.name, "namespace": target.namespace, "creationTimestamp": timestamp()}
        return _answer({**kind, "metadata": metadata, "spec": spec, "status": status}, 201)

    def _review_access(self, request: Request) -> Response:
        decoder = Decoder("authorization.k8s.io/v1", "SelfSubjectAccessReview")
        item = decoder.decode(_document("SelfSubjectAccessReview", request))
        wanted, path = item.get("spec", {}).get("resourceAttributes"), item.get("spec", {}).get("nonResourceAttributes")
        if (wanted is None) == (path is None):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            error = FieldError("spec.resourceAttributes", "Invalid value", detail, wanted)
            raise errors.invalid("authorization.k8s.io", "", "", [error])
        if wanted is not None:
            names = {"verb": "verb", "group": "group", "resource": "resource", "subresource": "subresource",
                     "namespace": "namespace", "name": "name"}  # fmt: skip
            attributes = Attributes(**{key: wanted.get(name, "") for key, name in names.items()})
        else:
            attributes = Attributes((path or {}).get("verb", ""), path=(path or {}).get("path", ""))
        reason = self._access.find_reason(request, attributes)
        status = {"allowed": reason is not None} | ({"reason": reason} if reason else {})
        review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
        return _answer({**review, "spec": item["spec"], "status": status}, 201)


def _method_verb(method: str) -> str:
    return {"POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}.get(method, "get")


def _find_target(request: Request, resources: Collection[Resource]) -> _Target | None:
    """Return what the path names, None if it is no path of one of the API server's resources."""
    parts = [part for part in request.path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        version, rest = "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 2:
        version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 1:
        namespace = rest[1]
        rest = rest[2:] if len(rest) > 2 and rest[2] not in {"status", "finalize"} else rest
    known = {one.plural: one for one in resources if one.api_version == version}
    if not rest or not known:
        return None
    resource = known.get(rest[0])
    name, subresource = (*rest[1:], "", "")[:2]
    if not resource or len(rest) > 3 or (subresource and subresource not in resource.subresources):
        raise errors.no_such_path()
    if (name and resource.namespaced and not namespace) or (
        namespace and not resource.namespaced and rest[0] != "namespaces"
    ):
        raise errors.no_such_path()
    target = _Target(resource, "", namespace, name, subresource)
    return replace(target, verb=_verb(request, name), name=name or _selected_name(request))


def _verb(request: Request, name: str) -> str:
    match request.method:
        case "GET" | "HEAD":
            if request.flag("watch"):
                return "watch"
            return "get" if name else "list"
        case "DELETE":
            return "delete" if name else "deletecollection"
        case method:
            return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())


def _selected_name(request: Request) -> str:
    """Return the name that a field selector fixes, which roles with `resourceNames` allow."""
    parts = request.first("fieldSelector").split(",") if request.method in {"GET", "DELETE"} else []
    names = [part.partition("metadata.name=")[2] for part in parts if part.startswith("metadata.name=")]
    return names[0].removeprefix("=") if names else ""


def _document(kind: str, request: Request) -> Any:
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type == CONTENT_TYPE:
        return decode_protobuf(request.body, kind)
    if content_type not in _BODY_TYPES:
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
        why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise ApiError(415, "UnsupportedMediaType", why)
    try:
        return parse_body(request.body)
    except ApiError as error:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {error.message}"
        ) from error


def _options(target: _Target, request: Request) -> WriteOptions:
    kind = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}[target.verb]
    dry_run, strictness = request.query.get("dryRun", []), request.first("fieldValidation", "Warn") or "Warn"
    if dry_run not in ([], ["All"]):
        error = FieldError("dryRun", "Unsupported value", 'supported values: "All"', dry_run)
        raise errors.invalid_options(kind, error)
    if strictness not in {"Ignore", "Warn", "Strict"}:
        error = FieldError(
            "fieldValidation", "Unsupported value", 'supported values: "", "Ignore", "Strict", "Warn"', strictness
        )
        raise errors.invalid_options(kind, error)
    manager = request.first("fieldManager") or request.agent.partition("/")[0]
    return WriteOptions(manager, bool(dry_run), strictness, request.flag("force"), target.subresource)


def _delete_options(request: Request) -> tuple[Object, bool]:
    found: Object = {}
    if request.body:
        document = _document("DeleteOptions", request)
        kind = document.get("kind", "DeleteOptions") if isinstance(document, dict) else ""
        if kind != "DeleteOptions":
            scheme = "pkg/apis/meta/internalversion/scheme/register.go:27"
            raise errors.bad_request(f'no kind "{kind}" is registered for version "v1" in scheme "{scheme}"')
        known = {"kind": "DeleteOptions", "apiVersion": "v1"}
        try:
            found = Decoder("v1", "DeleteOptions").decode({**document, **known})
        except ApiError as error:
            raise errors.bad_request(error.message.partition("handled as a DeleteOptions: ")[2]) from error
    for name in ("propagationPolicy", "gracePeriodSeconds"):
        if name in request.query:
            text = request.first(name)
            found[name] = int(text) if name == "gracePeriodSeconds" else text
    if found.get("propagationPolicy", "Background") not in POLICIES:
        detail = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        error = FieldError("propagationPolicy", "Unsupported value", detail, found["propagationPolicy"])
        raise errors.invalid_options("DeleteOptions", error)
    return found, request.first("dryRun") == "All"


def _answer_write(written: Written) -> Response:
    response = _answer(written.item, 201 if written.created else 200)
    response.warnings = written.warnings
    return response


def _answer(item: Object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    if "metadata" in item:
        check_object(item)
    return Response(
        status, json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode() + b"\n", headers=headers or {}
    )
