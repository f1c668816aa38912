"""Write `docs/reference/errors.md`, a list of all errors: `.venv/bin/python scripts/error_reference.py`.

The cause of an error is the docstring of its class, its remedy the hint of the command line.
"""

import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

from file_hash import ROOT

import roost
from roost.agents.network.egress.proxy import REFUSAL_STATUS
from roost.cli.output.hints import HINTS
from roost.core.problem import InvalidInput, Problem, error_code
from roost.http.storage_gateway.application import OWN_STATUS
from roost.storage.payments.model import PaymentRefused
from roost.web.errors import STATUS, status_code

PAGE = ROOT / "docs" / "reference" / "errors.md"
COMMAND = ".venv/bin/python scripts/error_reference.py"
NOT_IMPORTED = (
    "roost.migrations.env",
    "roost.migrations.versions",
    "roost.drivers.engine.hermes.scheduler",
    "__main__",
)
HEAD = f"""# Errors

Written from the code by `{COMMAND}`. The [overview](api.md#errors) has the forms of error bodies.

Every response with an error has the header `X-Error-Code`. A code is stable, a message is not unless
[the contract](contract.md) fixes it, so programs tell errors apart by their codes. `X-Error-Field` is the path of the
field at fault where the server knows it, such as `mappings.0.port`: at most 200 characters, and `_` in place of all but
`A-Z a-z 0-9 _ . $ - /`. Messages can say more than what is listed here. Some errors occur only in the log, or when the
server starts. The command line prints the remedies.
"""
PLAIN: Mapping[int, tuple[str, str]] = {
    405: ("Method not allowed", "`Allow` lists the methods of the path"),
    408: ("Request timeout", "The head or the body arrived too slowly"),
    415: ("Unsupported media type", "Send the body without `Content-Encoding`"),
    416: ("Range not satisfiable", "`Content-Range` has the size of the content"),
    421: (
        "Only the origin form of a request target is served",
        "Send the request to the server itself, not as to a proxy",
    ),
    431: ("Request header fields too large", ""),
    502: ("The agent does not answer", "A program in the agent's container does not listen, or does not speak HTTP"),
    504: ("The agent took too long to answer", "The agent's logs may say why"),
    505: ("HTTP version not supported", "Use HTTP/1.1"),
}
REMEDIES: Mapping[int, str] = {
    400: "Correct the request: the message or `X-Error-Detail` says what is allowed.",
    401: "Send a valid credential.",
    402: "Pay what the response asks for.",
    403: "Use a credential or a plan that allows it.",
    404: "Check the id and the path; what belongs to another tenant is not found either.",
    409: "Read the present state, and repeat the request if it still applies.",
    412: "Read the present version, and repeat the write with its `ETag`.",
    413: "Send less.",
    429: "Wait for the seconds in `Retry-After`.",
    500: "Look for the `X-Request-Id` of the response in the server's log.",
    503: "Try again, after the seconds in `Retry-After` if it is there.",
    504: "Try again.",
}
_GENERAL = (Problem.message, InvalidInput.message)


def list_problems() -> list[type[Problem]]:
    """Return all errors of the package, sorted by code. Imports every module of it."""
    limit = sys.getrecursionlimit()
    for module in pkgutil.walk_packages(roost.__path__, "roost."):
        if not module.name.startswith(NOT_IMPORTED) and not module.name.endswith(NOT_IMPORTED):
            import_module(module.name)
    sys.setrecursionlimit(limit)  # the libraries of a facilitator raise it for the whole process
    found = {one for one in _descend(Problem) if one.__module__.partition(".")[0] == "roost"}
    return sorted(found, key=error_code)


def render_page() -> str:
    rows: dict[int, list[str]] = {}
    for problem in list_problems():
        rows.setdefault(STATUS[problem.kind], []).append(_row(problem))
    for status, (message, remedy) in PLAIN.items():
        code = status_code(status)
        rows.setdefault(status, []).append(f"| `{code}` | {message} | | {_sentence(HINTS.get(code, remedy))} |")
    return "\n".join([HEAD, *(line for status in sorted(rows) for line in _section(status, rows[status]))])


def _descend(problem: type[Problem]) -> Iterator[type[Problem]]:
    yield problem
    for one in problem.__subclasses__():
        yield from _descend(one)


def _section(status: int, rows: list[str]) -> Iterator[str]:
    yield f"## {status}\n"
    if status in REMEDIES:
        yield f"{REMEDIES[status]}\n"
    yield from ("| code | message | cause | remedy |", "|---|---|---|---|", *sorted(rows), "")


def _row(problem: type[Problem]) -> str:
    code, message = error_code(problem), problem.message
    if message in _GENERAL and problem not in (Problem, InvalidInput):
        message = "says the cause"
    cause = inspect.cleandoc(vars(problem).get("__doc__") or "").partition("\n\n")[0]
    if own := _own_status(problem):
        cause = f"{cause} Status {own}."
    return f"| `{code}` | {_cell(message)} | {_cell(cause)} | {_cell(_sentence(HINTS.get(code, '')))} |"


def _own_status(problem: type[Problem]) -> str:
    """Return the status where an address has another one than the kind of the problem."""
    if issubclass(problem, PaymentRefused):
        return "402"
    if problem in OWN_STATUS:
        return f"{OWN_STATUS[problem]} on storage gateways"
    lines = [line for kind, line in REFUSAL_STATUS.items() if issubclass(problem, kind)]
    return f"{lines[0][:3].decode()} from the egress proxy" if lines else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    PAGE.write_text(render_page())
