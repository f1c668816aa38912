"""Entry point of pid 1: `python3 -S -E -I <this folder>/warden.py '<config as JSON>'`.

The folder is mounted as a whole under any name and imports nothing but the standard library; `compile_warden.py` makes
`warden.pyc` of it, which starts faster.
`docs/builders/warden-protocol.md` describes the configuration and the protocol.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

PACKAGE = "warden"
MODULES: tuple[tuple[str, CodeType], ...] = ()  # replaced by names and code, in the order of their imports


def main() -> None:
    package = type(sys)(PACKAGE)
    package.__path__ = [__file__.rpartition("/")[0] or "."]
    sys.modules[PACKAGE] = package
    for name, code in MODULES:
        module = sys.modules[f"{PACKAGE}.{name}"] = type(sys)(f"{PACKAGE}.{name}")
        module.__package__ = PACKAGE
        exec(code, module.__dict__)  # noqa: S102 - our own, as an import does
    service = __import__(f"{PACKAGE}.service", fromlist=["main"])
    service.main(sys.argv[1])


if __name__ == "__main__":
    main()
