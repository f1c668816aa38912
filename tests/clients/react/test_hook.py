"""The SDK's hook for pages, unmodified, in a React that draws nothing."""

import shutil
from pathlib import Path

from tests.support import node
from tests.support.server import running

FOLDER = Path(__file__).parent


async def test_a_page_uploads(tmp_path: Path) -> None:
    packages = node.installed(FOLDER)
    at = tmp_path / "journey"
    at.mkdir()
    shutil.copy(FOLDER.parent / "names.mjs", at)
    async with running(tmp_path / "data") as server:
        everybody = {"ROOST_PORT": str(server.port), "ROOST_KEY": server.key()}
        told = await node.run(FOLDER / "hook.mjs", at, packages, everybody, "--no-warnings", "--import", "./names.mjs")
    assert told == "done\n"
