"""Follow a guide: run its commands as a reader types them, and compare what they print."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx

from tests.journeys.server_process import ServerProcess

_GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_TERMINAL_LINE = "$ "
_PROGRAMS = f"""
roost() {{ {sys.executable} -m roost "$@"; }}
curl() {{ command curl -sS --fail-with-body "$@"; }}
"""


class GuideRunner:
    """Types the commands of guides into a shell, in one folder, against one server.

    renamed: texts of the pages, such as ids, with those that stand in their place on this server.
    """

    def __init__(self, server: ServerProcess, folder: Path, **renamed: str) -> None:
        self._renamed = {
            ".venv/bin/roost": "roost",
            "localhost:8642": f"localhost:{httpx.URL(server.url).port}",
            **renamed,
        }
        self._folder = folder
        self._environment = {**os.environ, "ROOST_DATA": str(server.data)}

    def follow(self, page: str, heading: str, **variables: str) -> None:
        """Run the blocks of a chapter; those with `$ ` lines also have what is printed, `...` for any text."""
        chapter = (_GUIDES / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        assert chapter, f"{page} has no chapter {heading!r}"
        for text, present in {**self._renamed, "\\\n": " "}.items():
            chapter = chapter.replace(text, present)
        for block in (textwrap.dedent(text) for language, text in _BLOCK.findall(chapter) if not language):
            if not block.startswith(_TERMINAL_LINE):
                self.run(block, **variables)
                continue
            for command, printed in _commands(block):
                lines = [line.rstrip() for line in self.run(command, **variables).splitlines()]
                pattern = re.escape(printed.strip()).replace(re.escape("..."), ".*")
                found = "\n".join(lines).strip()
                assert re.fullmatch(pattern, found, re.DOTALL), f"$ {command}\n{found}\n--- the page says:\n{printed}"

    def run(self, script: str, **variables: str) -> str:
        """Run a script and return what it prints."""
        done = subprocess.run(
            ["/bin/sh", "-ec", _PROGRAMS + script],
            cwd=self._folder,
            env={**self._environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a terminal block, each with the lines that the page shows below it."""
    for part in block.removeprefix(_TERMINAL_LINE).split(f"\n{_TERMINAL_LINE}"):
        command, _, printed = part.partition("\n")
        yield command, printed
