import json
from pathlib import Path
from typing import Any

from roost.drivers.engine.openclaw import software

HERE = Path(software.__file__).parent
LOCK: dict[str, Any] = json.loads((HERE / "package-lock.json").read_text())


def test_the_lock_is_of_the_default_version() -> None:
    assert LOCK["packages"]["node_modules/openclaw"]["version"] == software.DEFAULT_VERSION
    assert json.loads((HERE / "package.json").read_text())["dependencies"] == {"openclaw": software.DEFAULT_VERSION}


def test_every_package_has_a_checksum_and_none_names_a_host() -> None:
    packages = {name: entry for name, entry in LOCK["packages"].items() if name and not entry.get("inBundle")}
    assert len(packages) > 300
    assert [name for name, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
