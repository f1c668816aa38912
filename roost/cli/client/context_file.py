"""The file of contexts: servers by name, each with the key that `roost login` got, and which one is current.

The file has keys, so only its owner may read it (mode 0600). It is replaced as a whole: a reader sees the old one or
the new one. Commands that change it take turns, so that none undoes what another did. Decision 0040 says why.
"""

import json
import os
import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from roost.cli.output.output import ExitCode, exit_with_error, file_errors
from roost.core.machine.private_file import lock_folder, write_private_file
from roost.core.sensitive import Sensitive

LOCAL = "local"
"""Name of the server of the data folder on this machine, which needs no login."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OTHERS = 0o077
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_selected: ContextVar[str | None] = ContextVar("context", default=None)


@dataclass(frozen=True)
class ServerContext:
    """A server and the key for it. The key is sent to that URL only."""

    url: str
    key: Sensitive[str]


@dataclass
class ContextFile:
    """Content of the file. current: the context of commands that name none; None for the data folder."""

    contexts: dict[str, ServerContext] = field(default_factory=dict[str, ServerContext])
    current: str | None = None

    def get(self, name: str) -> ServerContext:
        """Return a context. Exits if there is none."""
        if name not in self.contexts:
            known = ", ".join([LOCAL, *self.contexts])
            exit_with_error(
                f"There is no context {name!r}; known are {known}. `roost login URL` adds one.", ExitCode.NOT_FOUND
            )
        return self.contexts[name]


def select_context(name: str | None) -> None:
    """Set the value of `--context` for this command."""
    _selected.set(name)


def selected_context() -> str | None:
    return _selected.get()


def validate_context_name(name: str) -> str:
    """Return the name. Exits if it is not valid."""
    if name == LOCAL or not _NAME.fullmatch(name):
        exit_with_error(
            f"{name!r} cannot be the name of a context: letters, digits, `.`, `_` and `-` are allowed, and {LOCAL!r} "
            "is the server of the data folder on this machine.",
            ExitCode.USAGE,
        )
    return name


def contexts_path() -> Path:
    """Return the path of the file (XDG Base Directory Specification)."""
    folder = os.environ.get("XDG_CONFIG_HOME") or ""
    return (Path(folder) if folder.startswith("/") else Path.home() / ".config") / "roost" / "config"


def read_contexts() -> ContextFile:
    """Return the contexts; none if there is no file. Exits if the file is damaged or readable by others."""
    path = contexts_path()
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode
            content = json.load(file)
        contexts = {
            validate_context_name(name): ServerContext(_text(entry["url"]), Sensitive(_text(entry["key"])))
            for name, entry in content["contexts"].items()
        }
        current = None if content["current"] is None else _text(content["current"])
    except (FileNotFoundError, NotADirectoryError):
        return ContextFile()
    except OSError as error:
        exit_with_error(f"{path}: {error.strerror}", ExitCode.NOT_ALLOWED)
    except (ValueError, LookupError, TypeError, AttributeError):
        exit_with_error(f"{path} is damaged: remove it and log in again with `roost login URL`.", ExitCode.USAGE)
    if mode & _OTHERS:
        exit_with_error(
            f"{path} has keys and must be readable by you alone: `chmod 600 {path}`. If others could read it, revoke "
            "its keys.",
            ExitCode.NOT_ALLOWED,
        )
    return ContextFile(contexts, current if current in contexts else None)


def current_context(file: ContextFile) -> str | None:
    """Return the context that commands use: of `--context`, else of ROOST_CONTEXT, else the file's."""
    return selected_context() or os.environ.get("ROOST_CONTEXT") or file.current


def overriding_variable() -> str | None:
    """Return the variable of the environment that comes before the file's current context."""
    return next((name for name in ("ROOST_URL", "ROOST_CONTEXT", "ROOST_DATA") if os.environ.get(name)), None)


def find_other_server(url: str, domain: str, *, names_folder: bool) -> tuple[str, str] | None:
    """Return the server that commands reach instead of the one at `url`, and what mends it; None if they reach that.

    names_folder: whether the commands are given its `--data`, which comes before the file's current context.
    """
    if other := os.environ.get("ROOST_URL"):
        return None if _is_same_server(other, url, domain) else (other, "unset ROOST_URL ROOST_TOKEN")
    if name := os.environ.get("ROOST_CONTEXT"):
        remedy = "unset ROOST_CONTEXT"
    elif names_folder or os.environ.get("ROOST_DATA"):
        return None
    else:
        name, remedy = read_contexts().current or LOCAL, "roost contexts use local"
    if name == LOCAL or ((known := read_contexts().contexts.get(name)) and _is_same_server(known.url, url, domain)):
        return None
    return f"{known.url} (context {name})" if known else f"the unknown context {name}", remedy


def _is_same_server(one: str, other: str, domain: str) -> bool:
    """Return whether two URLs reach one server: the same port of this machine, or names below its domain."""
    try:
        found, own = urlsplit(one), urlsplit(other)
        host, own_host, is_own_port = found.hostname or "", own.hostname or "", found.port == own.port
    except ValueError:
        return False
    is_own_host = host == own_host or (is_loopback(host) and is_loopback(own_host))
    return (is_own_port and is_own_host) or (domain != "localhost" and f".{host}".endswith(f".{domain}"))


def is_loopback(host: str) -> bool:
    """Return whether a host of a URL is this machine."""
    return host in _LOOPBACK or host.endswith(".localhost")


@contextmanager
def change_contexts() -> Generator[ContextFile]:
    """Yield the contexts, and replace the file with what the caller made of them; other commands wait meanwhile.

    Exits if the file is damaged, readable by others, or cannot be written. An exception of the caller changes nothing.
    """
    path = contexts_path()
    with ExitStack() as stack:
        with file_errors(path, ExitCode.NOT_ALLOWED):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(lock_folder(path.parent))
        file = read_contexts()
        yield file
        contexts = {name: {"url": one.url, "key": one.key.reveal()} for name, one in file.contexts.items()}
        content = json.dumps({"current": file.current, "contexts": contexts}, indent=2) + "\n"
        with file_errors(path, ExitCode.NOT_ALLOWED):
            write_private_file(path.resolve(), content)  # a link to the file stays one


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
