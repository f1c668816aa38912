"""The guide of the fleet as code, typed word by word, on a real engine."""

import re
import textwrap
from pathlib import Path

import pytest

from tests.journeys.guide import GuideRunner
from tests.journeys.server_process import up

pytestmark = [pytest.mark.container, pytest.mark.engine, pytest.mark.timeout(300)]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fleet.md"


def test_the_first_chapter(tmp_path: Path) -> None:
    (file,) = re.findall(r"^ *```yaml\n(.*?)^ *```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "roost.yaml").write_text(textwrap.dedent(file))
    with up(tmp_path / "data", "--no-first-agent") as server:
        GuideRunner(server, tmp_path).follow("fleet.md", "Begin", LIBRARY_KEY="example")
        (agent,) = server.agents()
        assert (agent["name"], agent["description"]) == ("Ada", "Reads articles")
