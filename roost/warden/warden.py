"""Entry point of pid 1: `python3 -S -E -I <this folder>/warden.py '<config as JSON>'`.

The folder is mounted as a whole under any name and imports nothing but the standard library.
`docs/builders/warden-protocol.md` describes the configuration and the protocol.
"""

import os
import sys


def main() -> None:
    parent, package = os.path.split(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - importing pathlib takes time
    sys.path.append(parent)
    service = __import__(f"{package}.service", fromlist=["main"])
    service.main(sys.argv[1])


if __name__ == "__main__":
    main()
