"""Who may do what: bearer tokens, and roles and bindings evaluated as the RBAC authorizer does."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.support.kubernetes.errors import ApiError, unauthorized
from tests.support.kubernetes.http_server import Request
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.store import Store

_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_REVIEWS = {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["create"]}
_ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_BUILT_IN: dict[str, tuple[list[Object], list[str]]] = {
    "cluster-admin": ([_ALL, {"nonResourceURLs": ["*"], "verbs": ["*"]}], ["system:masters"]),
    "system:basic-user": ([_REVIEWS], ["system:authenticated"]),
    "system:discovery": ([{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}], ["system:authenticated"]),
    "system:public-info-viewer": (
        [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}],
        ["system:authenticated", "system:unauthenticated"],
    ),
}


@dataclass(frozen=True)
class Attributes:
    """What a request wants to do; `path` alone if it is for no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def wanted(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def built_in_roles() -> Iterator[Object]:
    """Yield the cluster roles and bindings that every cluster has."""
    rbac = "rbac.authorization.k8s.io"
    for name, (rules, groups) in _BUILT_IN.items():
        metadata = {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
        subjects = [{"kind": "Group", "apiGroup": rbac, "name": group} for group in groups]
        reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": name}
        yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
        yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": metadata, "subjects": subjects,
               "roleRef": reference}  # fmt: skip


class AccessControl:
    """Authenticates by `tokens`, which map a bearer token to a user and groups, and authorizes by the stored roles."""

    def __init__(self, store: Store) -> None:
        self.tokens: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._store = store

    def authenticate(self, request: Request) -> None:
        """Fill in the user of a request. Raises ApiError 401."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            request.user, request.groups = "system:anonymous", ("system:unauthenticated",)
            return
        if scheme.lower() != "bearer" or token.strip() not in self.tokens:
            raise unauthorized()
        request.user, groups = self.tokens[token.strip()]
        request.groups = (*groups, "system:authenticated")

    def issue_token(self, namespace: str, name: str) -> str:
        """Return a new token of a service account."""
        token = f"{name}.{secrets.token_urlsafe(24)}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        self.tokens[token] = (f"system:serviceaccount:{namespace}:{name}", groups)
        return token

    def require(self, request: Request, attributes: Attributes) -> None:
        """Raise ApiError 403 unless a role allows it."""
        if self.find_reason(request, attributes) is None:
            raise _refusal(request.user, attributes)

    def find_reason(self, request: Request, attributes: Attributes) -> str | None:
        """Return what allows it, None if nothing does."""
        if "system:masters" in request.groups:
            return ""
        who = (request.user, request.groups)
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            namespace = attributes.namespace if kind == "RoleBinding" else ""
            if kind == "RoleBinding" and not namespace:
                return None
            for binding in self._store.objects(kind, namespace):
                subject = _matching_subject(binding, *who)
                if subject and any(_allows(rule, attributes) for rule in self._rules(binding)):
                    name = "/".join(part for part in (binding["metadata"]["name"], namespace) if part)
                    role = binding["roleRef"]
                    return f'RBAC: allowed by {kind} "{name}" of {role["kind"]} "{role["name"]}" to {subject}'
        return None

    def _rules(self, binding: Object) -> Sequence[Object]:
        role = binding["roleRef"]
        namespace = binding["metadata"]["namespace"] if role["kind"] == "Role" else ""
        found = self._store.get(role["kind"], namespace, role["name"])
        return (found or {}).get("rules") or ()


def _matching_subject(binding: Object, user: str, groups: tuple[str, ...]) -> str:
    for one in binding.get("subjects") or ():
        if one["kind"] == "ServiceAccount":
            namespace = one.get("namespace", binding["metadata"].get("namespace", ""))
            if user == f"system:serviceaccount:{namespace}:{one['name']}":
                return f'ServiceAccount "{one["name"]}/{namespace}"'
        elif one["name"] in ((user,) if one["kind"] == "User" else groups):
            return f'{one["kind"]} "{one["name"]}"'
    return ""


def _allows(rule: Object, wanted: Attributes) -> bool:
    if not {"*", wanted.verb} & set(rule["verbs"]):
        return False
    if wanted.path:
        paths = rule.get("nonResourceURLs", ())
        return any(wanted.path == one or (one.endswith("*") and wanted.path.startswith(one[:-1])) for one in paths)
    resources = {"*", wanted.wanted} | ({f"*/{wanted.subresource}"} if wanted.subresource else set())
    names = rule.get("resourceNames")
    return (
        bool({"*", wanted.group} & set(rule.get("apiGroups", ())))
        and bool(resources & set(rule.get("resources", ())))
        and (not names or wanted.name in names)
    )


def _refusal(user: str, wanted: Attributes) -> ApiError:
    if wanted.path:
        return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {wanted.verb} path "{wanted.path}"', {})
    qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    shown = f'{qualified} "{wanted.name}"' if wanted.name else qualified
    message = (
        f'{shown} is forbidden: User "{user}" cannot {wanted.verb} '
        f'resource "{wanted.wanted}" in API group "{wanted.group}" {where}'
    )
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})
