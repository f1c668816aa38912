"""The subresources of pods that their kubelet or a budget answers: `exec`, `log` and `eviction`."""

import json

from tests.support.kubernetes import errors
from tests.support.kubernetes.access import AccessControl, Attributes
from tests.support.kubernetes.errors import ApiError
from tests.support.kubernetes.exec_stream import SUBPROTOCOLS, ExecHandler, ExecSession, run_local_process, serve_exec
from tests.support.kubernetes.http_server import Connection, Request, Response
from tests.support.kubernetes.incoming import parse_body
from tests.support.kubernetes.resources import BY_KIND, Object
from tests.support.kubernetes.schemas import Decoder
from tests.support.kubernetes.selectors import match_labels
from tests.support.kubernetes.store import Key, Store
from tests.support.kubernetes.writes import Writer

_PODS = BY_KIND["Pod"]


class PodRequests:
    """Answers them. `exec_handler` runs the commands; `logs` has the log of a pod by its uid."""

    def __init__(self, store: Store, writer: Writer, access: AccessControl) -> None:
        self.exec_handler: ExecHandler = run_local_process
        self.logs: dict[str, bytes] = {}
        self._store, self._writer, self._access = store, writer, access

    async def handle(
        self, subresource: str, verb: str, key: Key, request: Request, connection: Connection
    ) -> Response | None:
        """Answer a request for a subresource. Raises ApiError."""
        if subresource == "exec" and verb in {"get", "create"}:
            return await self._exec(key, request, connection)
        if subresource == "log" and verb == "get":
            pod = self._find(key)
            _container(pod, request.first("container"))
            return Response(200, self.logs.get(pod["metadata"]["uid"], b""), "text/plain")
        if subresource == "eviction" and verb == "create":
            return self._evict(key, request)
        raise errors.method_not_allowed()

    def _find(self, key: Key) -> Object:
        found = self._store.get("Pod", *key)
        if found is None:
            raise errors.not_found(_PODS, key[1])
        return found

    async def _exec(self, key: Key, request: Request, connection: Connection) -> Response | None:
        if self._access.find_reason(request, Attributes("create", "", "pods", "exec", *key)) is None:
            raise errors.forbidden(_PODS, key[1], "")  # the server gives no reason here
        streams = {name: request.flag(name) for name in ("stdin", "stdout", "stderr", "tty")}
        pod = self._find(key)
        container = _container(pod, request.first("container"))
        if not pod["spec"].get("nodeName"):
            raise errors.bad_request(f"pod {key[1]} does not have a host assigned")
        if request.headers.get("upgrade", "").lower() != "websocket":
            raise errors.bad_request("Upgrade request required")
        offered = {one.strip() for one in request.headers.get("sec-websocket-protocol", "").split(",")}
        if not offered & set(SUBPROTOCOLS):
            raise errors.bad_request(f"unable to upgrade: unsupported subprotocols {sorted(offered)}")
        if not any(streams[name] for name in ("stdin", "stdout", "stderr")):
            return Response(400, b"you must specify at least 1 of stdin, stdout, stderr", "text/plain; charset=utf-8")
        states = {one["name"]: one["state"] for one in pod["status"].get("containerStatuses", ())}
        if "running" not in states.get(container, {}):
            message = f'container not found ("{container}")'
            return Response(500, message.encode(), "text/plain; charset=utf-8")
        request.status = 101
        session = ExecSession(
            pod, container, request.query.get("command", []),
            stdin=streams["stdin"], stdout=streams["stdout"], stderr=streams["stderr"], tty=streams["tty"],
        )  # fmt: skip
        await serve_exec(session, self.exec_handler, request, connection)
        return None

    def _evict(self, key: Key, request: Request) -> Response:
        eviction = Decoder("policy/v1", "Eviction").decode(parse_body(request.body))
        if eviction.get("metadata", {}).get("name") != key[1]:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        pod = self._find(key)
        for budget in self._store.objects("PodDisruptionBudget", key[0]):
            if match_labels(budget["spec"].get("selector"), pod["metadata"].get("labels", {})):
                self._check_budget(budget, key[0])
        self._writer.delete(_PODS, key, eviction.get("deleteOptions", {}))
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Response(201, json.dumps(status).encode())

    def _check_budget(self, budget: Object, namespace: str) -> None:
        pods = [one for one in self._store.objects("Pod", namespace)
                if match_labels(budget["spec"].get("selector"), one["metadata"].get("labels", {}))]  # fmt: skip
        healthy = sum(is_ready(one) for one in pods)
        needed = _amount(budget["spec"].get("minAvailable"), len(pods))
        if "maxUnavailable" in budget["spec"]:
            needed = len(pods) - _amount(budget["spec"]["maxUnavailable"], len(pods))
        if healthy <= needed:
            name = budget["metadata"]["name"]
            message = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
            details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
            why = "Cannot evict pod as it would violate the pod's disruption budget."
            raise ApiError(429, "TooManyRequests", why, details)


def is_ready(pod: Object) -> bool:
    """Return whether the pod's Ready condition is true."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def _amount(value: int | str | None, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * total // 100)
    return int(value or 0)


def _container(pod: Object, wanted: str) -> str:
    names = [one["name"] for one in pod["spec"]["containers"]]
    if not wanted and len(names) == 1:
        return names[0]
    if not wanted:
        listed = f"[{' '.join(names)}]"
        raise errors.bad_request(
            f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: {listed}"
        )
    if wanted not in names:
        raise errors.bad_request(f"container {wanted} is not valid for pod {pod['metadata']['name']}")
    return wanted
