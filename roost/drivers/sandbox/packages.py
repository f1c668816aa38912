"""Folders of installed packages, for programs in sandboxes. Nothing of them is imported here."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path


def find_packages(*names: str, libraries: str = "") -> Mapping[str, Path]:
    """Return the folder or file of each package by its name, and the folder of libraries that a wheel has beside it."""
    found: dict[str, Path] = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None, name
        assert spec.origin is not None, name
        origin = Path(spec.origin)
        path = origin.parent if spec.submodule_search_locations else origin
        found[path.name] = path
        if libraries and (folder := path.with_name(libraries)).is_dir():
            found[libraries] = folder
    return found
