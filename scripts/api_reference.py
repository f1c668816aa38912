"""Render the API reference in Markdown from the OpenAPI description. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from roost.http.openapi.description import ERROR_MODELS
from roost.http.stack import routes
from roost.http.stack.routes import ApiOperation
from roost.web.url_rule import WEBSOCKET

Json = Mapping[str, Any]

_HEAD = """# Reference of the APIs

Generated from the code; [the overview](api.md) explains addresses, credentials and the forms of errors. Bodies are
JSON. Fields marked * are always there, or have to be sent. HEAD is answered wherever GET is.
"""
_ERRORS = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in ERROR_MODELS.values()]
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "format": "{}",
    "pattern": "`{}`",
}


def render_reference(app: FastAPI) -> str:
    """Render the reference page."""
    page = _ReferencePage(app.openapi())
    operations = [operation for operation in routes.list_operations(app) if operation.in_schema or operation.sends]
    parts = [_HEAD, *(page.operation(one) for one in operations), "## Shapes\n", *page.shapes()]
    return "\n".join(parts)


class _ReferencePage:
    """Page that collects the referenced schemas, to describe each once."""

    def __init__(self, description: Json) -> None:
        self._paths: Json = description["paths"]
        self._schemas: Json = description["components"]["schemas"]
        self._named: list[str] = []

    def operation(self, operation: ApiOperation) -> str:
        if operation.method == WEBSOCKET:
            return self._stream(operation)
        described = self._paths[operation.path][operation.method.lower()]
        return _section(operation, described, [*self._request(described), *self._responses(described["responses"])])

    def shapes(self) -> Iterator[str]:
        """Describe the referenced schemas and those they reference, sorted by name."""
        sections: dict[str, str] = {}
        while missing := [name for name in self._named if name not in sections]:
            for name in missing:
                sections[name] = "\n".join([f"### {name}\n", *self._shape(self._schemas[name])])
        yield from (sections[name] for name in sorted(sections))

    def _stream(self, operation: ApiOperation) -> str:
        described = self._paths[operation.path]["get"]
        shape = described["responses"]["101"]["content"]["application/json"]["schema"]
        lines = [f"Each message: {self._type(shape)}\n", *self._parameters(described)]
        return _section(operation, {"description": operation.handler.__doc__}, lines)

    def _request(self, described: Json) -> Iterator[str]:
        yield from self._parameters(described)
        if body := described.get("requestBody"):
            need = "" if body.get("required") else " (may be left out)"
            kinds = [f"{kind} {self._type(one.get('schema', {}))}" for kind, one in body["content"].items()]
            yield f"Body{need}: {', '.join(kinds)}\n"

    def _parameters(self, described: Json) -> Iterator[str]:
        parameters = [one for one in described.get("parameters", ()) if one["in"] != "path"]
        if parameters:
            yield from _table("parameter", "type", "")
            for one in parameters:
                about = _limits(one["schema"], one.get("description", ""))
                yield f"| `{one['name']}`{'*' if one.get('required') else ''} | {self._type(one['schema'])} | {about} |"
            yield ""

    def _responses(self, responses: Json) -> Iterator[str]:
        good = [status for status in responses if status < "400"]
        for status in sorted(good, reverse=True):
            content: Json = responses[status].get("content") or {}
            kinds = [_kind(kind) + self._type(one.get("schema", {})) for kind, one in content.items()]
            yield f"Answers {status}: {', '.join(kinds) or 'nothing'}\n"
        for status in sorted(responses.keys() - good):
            content = responses[status].get("content") or {}
            schemas: list[Json] = [one.get("schema", {}) for one in content.values()]
            if any(schema not in _ERRORS for schema in schemas):
                yield f"Answers {status}: {', '.join(map(self._type, schemas))}\n"
        if refusals := sorted(responses.keys() - good):
            yield f"Refuses with {', '.join(refusals)}.\n"

    def _shape(self, schema: Json) -> Iterator[str]:
        if about := schema.get("description"):
            yield f"{_line(about)}\n"
        if "properties" not in schema:
            yield f"{self._type(schema, whole=True)}\n"
            return
        yield from _table("field", "type", "")
        for name, one in schema["properties"].items():
            mark = "*" if name in schema.get("required", ()) else ""
            yield f"| `{name}`{mark} | {self._type(one)} | {_limits(one, one.get('description', ''))} |"
        yield ""

    def _type(self, schema: Json, *, whole: bool = False) -> str:
        if reference := schema.get("$ref"):
            name = str(reference).rsplit("/", 1)[-1]
            if name not in self._named:
                self._named.append(name)
            return f"[{name.rsplit('__', 1)[-1]}](#{name.lower()})"
        if values := schema.get("enum") or ("const" in schema and [schema["const"]]):
            return ", ".join(f"`{value}`" for value in values)
        if several := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            return " or ".join(self._type(one) for one in several)
        kind = schema.get("type", "any" if not whole else "anything")
        if kind == "array":
            return f"list of {self._type(schema.get('items', {}))}"
        if kind == "object" and isinstance(more := schema.get("additionalProperties"), dict):
            return f"object of {self._type(more)}"  # pyright: ignore[reportUnknownArgumentType] - JSON
        return str(kind)


def _section(operation: ApiOperation, described: Json, lines: Sequence[str]) -> str:
    about = _line(described.get("description") or described.get("summary") or "")
    credentials = ", ".join(operation.credentials) or "none"
    head = [f"## {operation.method} `{operation.path}`\n", f"{about}\n"]
    head.append(f"Credentials: {credentials}. Right: {operation.right}.\n")
    return "\n".join([*head, *lines])


def _limits(schema: Json, about: str) -> str:
    """Describe the bounds of a value, from all its branches, and its default."""
    branches: list[Json] = [schema, *schema.get("anyOf", ()), schema.get("items") or {}]
    bounds = [text.format(branch[key]) for branch in branches for key, text in _LIMITS.items() if key in branch]
    default = [f"default `{schema['default']}`"] if schema.get("default") not in (None, "") else []
    return "; ".join(filter(None, [_line(about), *dict.fromkeys(bounds), *default]))


def _kind(kind: str) -> str:
    return "" if kind == "application/json" else f"{kind} "


def _table(*columns: str) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]


def _line(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
