"""The entry point of pid 1: `python3 -S -E -I <this folder>/warden.py '<config as JSON>'`.

The folder is a package of the standard library alone, mounted as a whole under whatever name; nothing else of Roost is
needed or imported. `docs/builders/warden-protocol.md` has the configuration and the protocol.
"""

import os
import sys


def main() -> None:
    sys.modules["ssl"] = None  # type: ignore[assignment] - asyncio goes without it, which saves 4 MB and 5 ms
    parent, package = os.path.split(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs
    sys.path.append(parent)
    service = __import__(f"{package}.service", fromlist=["main"])
    service.main(sys.argv[1])


if __name__ == "__main__":
    main()
