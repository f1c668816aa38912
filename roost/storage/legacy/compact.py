"""JSON without spaces. Also a program: large JSON is read in a process of its own, where neither its time nor the
memory that it takes up is anybody else's.

The program takes the names of members as arguments and the body on its input. It gives a line of JSON (what is said
beside the content), then the content. It gives nothing for what is no object, and where time or memory was not enough.
Standard library only.
"""

import json
import os
import resource
import sys
from typing import Any, NoReturn, cast

_MEMORY = 1024**3
_SECONDS = 30


def compact(body: bytes, member: str, *beside: str) -> tuple[list[object], bytes]:
    """What an object has `beside` its content, and that: what is below `member` or else all. Raises ValueError."""
    found = json.loads(body, parse_constant=_refuse)
    if not isinstance(found, dict):
        raise ValueError  # noqa: TRY004 - as of any other JSON that is none of ours
    given = cast("dict[str, Any]", found)
    content = given.get(member, given)
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)  # 1e999 is no number here
    return [given.get(name) for name in beside], text.encode()


def main() -> None:
    os.nice(5)  # the server goes first
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        said, content = compact(sys.stdin.buffer.read(), *sys.argv[1:])
    except (ValueError, RecursionError, MemoryError):
        return
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + content)


def _refuse(_: str) -> NoReturn:
    raise ValueError


if __name__ == "__main__":
    main()
