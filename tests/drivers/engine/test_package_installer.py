import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from roost.drivers.engine.package_installer import uv_command

_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_CONFIG_FILE")


def command(monkeypatch: pytest.MonkeyPatch, **variables: str) -> list[str]:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", **variables}.items():
        monkeypatch.setenv(name, value)
    return list(uv_command(Path(sys.executable)))


def test_uv_asks_the_registries_of_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[install]\nextra-index-url = http://a.test http://b.test\n"
        "[global]\nindex-url = http://file.test/simple\nextra-index-url = http://c.test\n"
        "[download]\nextra-index-url = http://d.test\n"
    )
    found = command(monkeypatch, PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="http://own.test/simple", PIP_CERT="/ca.pem")
    options = list(pairwise(found))
    assert ("--default-index", "http://own.test/simple") in options  # the environment's before the file's
    assert [value for option, value in options if option == "--index"] == ["http://a.test", "http://b.test"]
    assert found[:2] == ["/usr/bin/env", "SSL_CERT_FILE=/ca.pem"]


def test_uv_accepts_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [*command(monkeypatch, PIP_INDEX_URL="http://own.test/simple"), "--dry-run", "--offline", "roost-no-such"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "roost-no-such" in done.stderr
    assert done.returncode == 1
