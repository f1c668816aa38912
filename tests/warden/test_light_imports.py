"""What the warden uses in place of slow modules of the standard library."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost.warden
from roost.warden.light_imports import Socket, format_json, parse_json, socket, suppress

SLOW_MODULES = {
    *("_collections_abc", "asyncio", "collections", "contextlib", "ctypes", "enum", "functools", "json", "os", "re"),
    *("struct", "threading", "typing"),
}
FOLDER = Path(roost.warden.__path__[0])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda items: st.lists(items) | st.dictionaries(st.text(), items),
    max_leaves=20,
)


def run_python(code: str) -> str:
    """Run code as wardens run, with the folder of the warden's package in the path."""
    command = [sys.executable, "-S", "-E", "-I", "-c", f"import sys; sys.path.append({str(FOLDER.parent)!r})\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_the_warden_imports_no_slow_module() -> None:
    loaded = run_python("import warden.service; print(*sys.modules)").split()
    assert "warden.service" in loaded
    assert not SLOW_MODULES & set(loaded)


@given(JSON)
def test_json_is_that_of_the_standard_library(value: Any) -> None:
    text = format_json(value)
    assert text == json.dumps(value)
    assert parse_json(text.encode()) == parse_json(f" {text}\n") == value


@pytest.mark.parametrize(
    "text", [b"", b" ", b"{", b"[1,", b'"', b"nul", b"1 2", b"{} x", b'{"a" 1}', b"\xff", b'"\n"', b"'a'"]
)
def test_malformed_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_malformed_json_is_a_value_error_without_the_json_module() -> None:
    code = """
from warden.light_imports import parse_json
try:
    parse_json(b'{"a"')
except ValueError:
    print("refused")
"""
    assert run_python(code) == "refused\n"


def test_values_that_json_does_not_know_are_rejected() -> None:
    with pytest.raises(TypeError):
        format_json({"a": b""})
    code = """
from warden.light_imports import parse_json
try:
    parse_json(b"[" * 100_000)
except RecursionError:
    print("refused")
"""
    assert run_python(code) == "refused\n"  # in a process of its own: other libraries raise the limit of this one


def test_another_python_without_the_c_module_uses_the_public_one() -> None:
    code = """
sys.modules["_json"] = None
from warden.light_imports import format_json, parse_json
print(format_json(parse_json(b' {"a": [1.5, null, "\\\\u00fc"]}')))
"""
    assert run_python(code) == '{"a": [1.5, null, "\\u00fc"]}\n'


def test_accepted_sockets_do_not_block_and_are_not_inherited() -> None:
    with closing(Socket(socket.AF_INET)) as listener, Socket(socket.AF_INET) as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(BlockingIOError):
            client.connect(listener.getsockname())
        with listener.accept_connection() as accepted:
            with pytest.raises(BlockingIOError):
                accepted.recv(1)
            flags = Path(f"/proc/self/fdinfo/{accepted.fileno()}").read_text().split("flags:")[1].split()[0]
            assert int(flags, 8) & 0o2000000  # O_CLOEXEC
        assert accepted.fileno() == -1


def test_suppress_ignores_only_its_kinds() -> None:
    with suppress(LookupError, OSError):
        raise FileNotFoundError
    with pytest.raises(ValueError, match="x"), suppress(LookupError):
        raise ValueError("x")
