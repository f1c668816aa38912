"""Parts of the standard library without the modules that they import.

enum, re, typing, collections, ctypes and os take 12 ms, half of a container's start. So the warden imports the C halves
of `os`, `socket`, `json` and others, and only here; types are imported for the type checker alone.
"""

from __future__ import annotations

import _ctypes
import _socket as socket
import sys
from _queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    import bisect
    import os
    import signal
    import stat
    import struct
    from collections.abc import Callable, Iterable
    from typing import Any, Self
else:
    import _bisect as bisect
    import _signal as signal
    import _stat as stat
    import _struct as struct
    import posix as os

__all__ = [
    "SimpleQueue", "Socket", "bisect", "call_prctl", "encode_name", "format_address", "format_json", "os", "parse_json",
    "signal", "socket", "stat", "struct", "suppress",
]  # fmt: skip


class Socket(socket.socket):
    """Non-blocking socket that a `with` block closes."""

    def __init__(
        self, family: int, kind: int = socket.SOCK_STREAM, protocol: int = 0, *, fileno: int | None = None
    ) -> None:
        super().__init__(family, kind, protocol, fileno)
        self.setblocking(False)

    def accept_connection(self) -> Socket:
        """Return the next connection of a listening socket. Raises OSError."""
        fd = int(self._accept()[0])  # type: ignore[attr-defined] - `accept` is in the Python half
        return Socket(self.family, self.type, self.proto, fileno=fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class suppress:  # noqa: N801 - contextlib's name
    """Ignore some kinds of exceptions of a `with` block."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


def encode_name(name: str) -> bytes:
    """Return the bytes of a file's name, as `os.fsencode` does."""
    return name.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def call_prctl(*arguments: int | bytes) -> int:
    """Call prctl(2) and return its result; bytes are passed by their address."""
    function = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # type: ignore[arg-type] - None is this program
    return _ctypes.call_function(function, arguments)


def format_address(data: bytes) -> bytes:
    """Return the address of bytes, which the caller keeps, as it is in memory."""
    pointer: Any = type("c_char_p", (_ctypes._SimpleCData,), {"_type_": "z"})  # type: ignore[misc] # noqa: SLF001
    return bytes(pointer(data))


class _DecoderOptions:
    """Options of `json.JSONDecoder`, with which C code decodes."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_int, parse_float, parse_constant = int, float, float  # constants are NaN and infinities


def _reject_value(value: object) -> object:
    raise TypeError(f"{value!r} is no JSON")


_scan: Callable[[str, int], tuple[Any, int]]
_encode: Callable[[object, int], Iterable[str]]
try:
    import _json

    _scan = _json.make_scanner(_DecoderOptions)  # type: ignore[arg-type] - it reads attributes
    _encode = _json.make_encoder(
        None, _reject_value, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
except (ImportError, AttributeError, TypeError):  # another version of Python
    import json

    _scan = json.JSONDecoder().raw_decode
    _encode = lambda value, _: json.JSONEncoder().iterencode(value)  # noqa: E731 - the same signature


def parse_json(data: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError and RecursionError."""
    text = (data.decode() if isinstance(data, bytes) else data).strip()
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # the C scanner may not find the exception of `json`, which is not loaded
        raise ValueError("malformed JSON") from None
    if end != len(text):
        raise ValueError("data after the JSON value")
    return value


def format_json(value: object) -> str:
    """Return a value as JSON in ASCII. Raises TypeError."""
    return "".join(_encode(value, 0))
