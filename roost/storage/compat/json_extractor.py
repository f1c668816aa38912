"""Extract a member of a JSON object as compact JSON; also a program, which parses large bodies in its own process.

The program takes the names of members as arguments and the body on standard input. It prints a line of JSON with the
other members, then the content. It prints nothing for a body that is not an object, or if it runs out of time or
memory. Standard library only.
"""

import json
import os
import resource
import sys
from typing import Any, NoReturn, cast

_MEMORY_LIMIT = 1024**3
_CPU_SECONDS = 30


def extract_json(body: bytes, member: str, *others: str) -> tuple[list[object], bytes]:
    """Return the members `others` of an object, and `member` (or the whole object) as compact JSON.

    Raises ValueError.
    """
    parsed = json.loads(body, parse_constant=reject_constant)
    if not isinstance(parsed, dict):
        raise ValueError  # noqa: TRY004 - invalid JSON raises the same
    value = cast("dict[str, Any]", parsed)
    content = value.get(member, value)
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)  # 1e999 parses as infinity
    return [value.get(name) for name in others], text.encode()


def main() -> None:
    os.nice(5)  # the server has priority
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        others, content = extract_json(sys.stdin.buffer.read(), *sys.argv[1:])
    except (ValueError, RecursionError, MemoryError):
        return
    sys.stdout.buffer.write(json.dumps(others).encode() + b"\n" + content)


def reject_constant(_: str) -> NoReturn:
    """Refuse `NaN` and infinities, which are not JSON, as `parse_constant` of `json.loads`."""
    raise ValueError


if __name__ == "__main__":
    main()
