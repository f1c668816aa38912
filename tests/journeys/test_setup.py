"""`make setup` where the package registry is behind a certificate authority of one's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.platforms.tls import untrusted_server

CHECKOUT = Path(__file__).parents[2]
FILES = ("scripts/setup.py", "pyproject.toml", "roost/__init__.py", "roost/core/__init__.py")


def test_a_registry_with_an_unknown_certificate_is_explained(tmp_path: Path) -> None:
    for name in (*FILES, "roost/core/machine/network_advice.py", "roost/drivers/engine/package_installer.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, tmp_path / name)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/runtime.txt").write_text(f"uv==1 --hash=sha256:{'0' * 64}\n")
    with untrusted_server() as url:
        ended = subprocess.run(
            [sys.executable, "-I", str(tmp_path / "scripts/setup.py"), "runtime"],
            env={"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": url, "PIP_RETRIES": "0"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert ended.returncode == 1
    assert "A certificate is not accepted. If its authority is your own" in ended.stderr
    assert "PIP_CERT" in ended.stderr
    assert ended.stderr.endswith("The dependencies could not be installed; the lines above say why.\n")
