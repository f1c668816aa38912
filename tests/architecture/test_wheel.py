"""The wheel has every file of the package, data included, with its permissions."""

import os
import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
CATALOGUES = ("roost/agents/library/hub/catalogue/", "roost/agents/library/templates/catalogue/")


def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    with zipfile.ZipFile(wheel) as archive:
        packed = {info.filename: bool(info.external_attr >> 16 & 0o100) for info in archive.infolist()}
    files = [path for path in (ROOT / "roost").rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    wanted = {path.relative_to(ROOT).as_posix(): os.access(path, os.X_OK) for path in files}
    assert {name: mode for name, mode in packed.items() if name.startswith("roost/")} == wanted
    assert all(any(name.startswith(folder) for name in packed) for folder in CATALOGUES)
