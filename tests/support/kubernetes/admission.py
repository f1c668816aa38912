"""Admission: namespaces, service accounts, pod security, limit ranges, quotas, and webhooks that a test adds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from tests.support.kubernetes.defaults import admit_new_pod, fill_defaults
from tests.support.kubernetes.errors import ApiError, forbidden, internal_error, not_found
from tests.support.kubernetes.pod_security import find_violation
from tests.support.kubernetes.quantities import parse_quantity, pod_requests, show_quantity
from tests.support.kubernetes.resources import BY_KIND, Object, Resource
from tests.support.kubernetes.store import Change, Store


@dataclass(eq=False)
class Denied(Exception):  # noqa: N818 - a webhook's answer
    """A webhook refuses: `code` and `reason` are those of its answer."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


@dataclass(frozen=True)
class Webhook:
    """An admission webhook. `review` gets the operation and the object, and returns a changed one, None, or raises.

    Denied is its refusal; any other exception is a webhook that does not answer.
    """

    name: str
    review: Callable[[str, Object], Object | None]
    kinds: tuple[str, ...] = ("Pod",)


@dataclass
class Admission:
    """The admission chain of writes; a test adds to `webhooks`."""

    store: Store
    make_suffix: Callable[[], str]
    webhooks: list[Webhook] = field(default_factory=list[Webhook])

    def __post_init__(self) -> None:
        self.store.listeners.append(self._refresh_quotas)

    def mutate(self, resource: Resource, operation: str, item: Object) -> Object:
        """Return the object with what plugins and webhooks change. Raises ApiError."""
        namespace = item["metadata"].get("namespace", "")
        if operation == "CREATE" and resource.namespaced:
            self._require_namespace(resource, item, namespace)
        if operation == "CREATE" and resource.kind == "Pod":
            item = self._apply_limit_ranges(item, namespace)
            account = item["spec"].get("serviceAccountName") or "default"
            if self.store.get("ServiceAccount", namespace, account) is None:
                why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
                raise forbidden(resource, item["metadata"]["name"], why)
            item = self._apply_classes(resource, admit_new_pod(self.store, item, self.make_suffix()))
        if operation == "CREATE" and resource.kind == "PersistentVolumeClaim":
            item = self._admit_claim(item)
        for hook in self.webhooks:
            if resource.kind in hook.kinds and (changed := self._call(hook, operation, item)) is not None:
                item = fill_defaults(changed)
        return item

    def validate(self, resource: Resource, operation: str, item: Object) -> list[str]:
        """Return the warnings for a write. Raises ApiError 403 if pod security or a quota forbids it."""
        namespace = item["metadata"].get("namespace", "")
        warnings: list[str] = []
        if resource.kind == "Pod":
            labels = (self.store.get("Namespace", "", namespace) or {"metadata": {}})["metadata"].get("labels", {})
            if violation := find_violation(labels, "enforce", item["spec"]):
                raise forbidden(resource, item["metadata"]["name"], f"violates {violation}")
            if violation := find_violation(labels, "warn", item["spec"]):
                warnings.append(f"would violate {violation}")
        if operation == "CREATE":
            for quota in self.store.objects("ResourceQuota", namespace) if namespace else ():
                self._check_quota(resource, quota, item)
        return warnings

    def _require_namespace(self, resource: Resource, item: Object, namespace: str) -> None:
        found = self.store.get("Namespace", "", namespace)
        if found is None:
            raise not_found(BY_KIND["Namespace"], namespace)
        if found["status"].get("phase") == "Terminating":
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            causes = [{**cause, "field": "metadata.namespace"}]
            raise forbidden(resource, item["metadata"].get("name", ""), why, causes)

    def _apply_classes(self, resource: Resource, item: Object) -> Object:
        spec, name = item["spec"], item["metadata"]["name"]
        runtime, priority = spec.get("runtimeClassName"), spec.get("priorityClassName")
        if runtime and not self.store.get("RuntimeClass", "", runtime):
            raise forbidden(resource, name, f'pod rejected: RuntimeClass "{runtime}" not found')
        if not priority:
            return item
        if not (found := self.store.get("PriorityClass", "", priority)):
            raise forbidden(resource, name, f"no PriorityClass with name {priority} was found")
        policy = found.get("preemptionPolicy", "PreemptLowerPriority")
        return {**item, "spec": {**spec, "priority": found["value"], "preemptionPolicy": policy}}

    def _call(self, hook: Webhook, operation: str, item: Object) -> Object | None:
        try:
            return hook.review(operation, item)
        except Denied as denied:
            message = f'admission webhook "{hook.name}" denied the request: {denied.message}'
            raise ApiError(max(denied.code, 400), denied.reason, message) from denied
        except Exception as error:
            address = f"https://{hook.name.partition('.')[0]}.default.svc:443/admit?timeout=10s"
            why = f'failed calling webhook "{hook.name}": failed to call webhook: Post "{address}": {error}'
            raise internal_error(why) from error

    def _admit_claim(self, item: Object) -> Object:
        metadata = item["metadata"]
        finalizers = [*metadata.get("finalizers", ()), "kubernetes.io/pvc-protection"]
        spec, default = item["spec"], "storageclass.kubernetes.io/is-default-class"
        if "storageClassName" not in spec:
            for one in self.store.objects("StorageClass"):
                if one["metadata"].get("annotations", {}).get(default) == "true":
                    spec = {**spec, "storageClassName": one["metadata"]["name"]}
        return {**item, "metadata": {**metadata, "finalizers": list(dict.fromkeys(finalizers))}, "spec": spec}

    def _apply_limit_ranges(self, item: Object, namespace: str) -> Object:
        for one in self.store.objects("LimitRange", namespace):
            for limit in one["spec"]["limits"]:
                if limit["type"] == "Container":
                    spec = item["spec"]
                    item = {**item, "spec": {**spec, "containers": [_limited(c, limit) for c in spec["containers"]]}}
                    self._check_limits(item, limit)
        return item

    def _check_limits(self, item: Object, limit: Object) -> None:
        for container in item["spec"]["containers"]:
            given = container["resources"].get("limits", {})
            for name, most in limit.get("max", {}).items():
                if name in given and parse_quantity(given[name]) > parse_quantity(most):
                    why = f"maximum {name} usage per Container is {most}, but limit is {given[name]}"
                    raise forbidden(BY_KIND["Pod"], item["metadata"]["name"], why)

    def _check_quota(self, resource: Resource, quota: Object, item: Object) -> None:
        hard = quota["spec"].get("hard", {})
        wanted = {key: value for key, value in _usage(resource, item) if key in hard}
        if resource.kind == "Pod":
            missing = [key for key in hard if key.partition(".")[0] in {"cpu", "memory", "requests", "limits"}
                       and not key.endswith("storage") and key not in wanted]  # fmt: skip
            names = ",".join(one["name"] for one in item["spec"]["containers"])
            if missing:
                listed = "; ".join(f"{key} for: {names}" for key in sorted(missing))
                why = f"failed quota: {quota['metadata']['name']}: must specify {listed}"
                raise forbidden(resource, item["metadata"]["name"], why)
        used = self._used(quota)
        over = sorted(key for key, value in wanted.items() if used[key] + value > parse_quantity(hard[key]))
        if over:

            def show_all(values: dict[str, Decimal]) -> str:
                return ",".join(f"{key}={_show(hard, key, values[key])}" for key in over)

            limits = {key: parse_quantity(hard[key]) for key in over}
            why = (f"exceeded quota: {quota['metadata']['name']}, requested: {show_all(wanted)}, "
                   f"used: {show_all(used)}, limited: {show_all(limits)}")  # fmt: skip
            raise forbidden(resource, item["metadata"]["name"], why)

    def _used(self, quota: Object) -> dict[str, Decimal]:
        used = {key: Decimal(0) for key in quota["spec"].get("hard", {})}
        namespace = quota["metadata"]["namespace"]
        for resource in BY_KIND.values():
            if resource.namespaced and resource.kind != "SelfSubjectAccessReview":
                for item in self.store.objects(resource.kind, namespace):
                    if item.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
                        for key, value in _usage(resource, item):
                            if key in used:
                                used[key] += value
        return used

    def _refresh_quotas(self, change: Change) -> None:
        """Write the usage into the quotas of the namespace, as their controller does."""
        if change.resource.kind in {"Event", "Lease"} or not change.key[0] or not self.store.objects("ResourceQuota"):
            return
        for quota in self.store.objects("ResourceQuota", change.key[0]):
            hard = quota["spec"].get("hard", {})
            used = {key: _show(hard, key, value) for key, value in self._used(quota).items()}
            if quota.get("status") != {"hard": hard, "used": used}:
                self.store.put({**quota, "status": {"hard": hard, "used": used}})


def _show(hard: Object, key: str, value: Decimal) -> str:
    return show_quantity(value, binary=str(hard[key]).endswith("i") or "memory" in key or "storage" in key)


def _limited(container: Object, limit: Object) -> Object:
    given = container.get("resources", {})
    limits = {**limit.get("default", {}), **given.get("limits", {})}
    requests = {**limit.get("defaultRequest", limits), **given.get("requests", {})}
    resources = {key: value for key, value in {**given, "limits": limits, "requests": requests}.items() if value}
    return {**container, "resources": resources}


def _usage(resource: Resource, item: Object) -> Iterator[tuple[str, Decimal]]:
    """Yield what an object uses of a quota."""
    yield f"count/{resource.qualified}", Decimal(1)
    if not resource.group:
        yield resource.plural, Decimal(1)
    if resource.kind == "Pod":
        for kind in ("requests", "limits"):
            for name, number in pod_requests(item["spec"], kind).items():
                yield f"{kind}.{name}", number
                if kind == "requests":
                    yield name, number
    if resource.kind == "PersistentVolumeClaim":
        storage = item["spec"].get("resources", {}).get("requests", {}).get("storage", "0")
        yield "requests.storage", parse_quantity(storage)
