"""Configuration: the only reader of the environment and of the settings file, parsed once into frozen `Settings`.

`database_url` is `ROOST_DATABASE_URL` in the environment and `database_url` in `roost.toml` of the data folder; the
environment wins, and a command-line flag wins over both. Secrets can also be given as a file (`ROOST_KEK_FILE`).
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from roost.setting_types import parse_path
from roost.settings import SECRET_SETTINGS, BadSettings, Settings

_CLIENT_VARIABLES = frozenset({"ROOST_URL", "ROOST_TOKEN", "ROOST_CONTEXT"})  # of the command line as a client


def load_settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """Load settings from flags (None means not given), environment and `roost.toml`. Raises BadSettings."""
    source = os.environ if environment is None else environment
    given = dict(_read_environment(source)) | {name: value for name, value in flags.items() if value is not None}
    file = _read_file(parse_path(given.get("data") or ".roost") / "roost.toml")
    data_home = source.get("XDG_DATA_HOME") or "~/.local/share"
    texts = {name: _as_text(name, value) for name, value in {**file, **given}.items()}
    defaults = {"engines": f"{data_home}/roost/engines", "kubernetes_api": _find_cluster(source)}
    values = defaults | {name: text for name, text in texts.items() if text}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise BadSettings(_describe_error(error.errors()[0])) from None


def _find_cluster(environment: Mapping[str, str]) -> str | None:
    """Return the address that each pod of Kubernetes has of its API server; None outside of pods."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}" if host else None


def variable_name(setting: str) -> str:
    return f"ROOST_{setting.upper()}"


def _read_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    names = {variable_name(name): name for name in Settings.model_fields}
    files = {f"{variable_name(name)}_FILE": name for name in SECRET_SETTINGS}
    for variable, text in environment.items():
        if variable in names:
            yield names[variable], text
        elif variable in files:
            if text and variable_name(files[variable]) not in environment:
                yield files[variable], _read_secret(variable, text)
        elif variable.startswith("ROOST_") and variable not in _CLIENT_VARIABLES:
            raise BadSettings(f"{variable}: unknown variable{_suggest_name(variable, [*names, *files])}")


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{variable}: {path} could not be read: {error}") from None


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        content = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    known = Settings.model_fields.keys() - {"data"}  # the file is in the data folder
    if unknown := content.keys() - known:
        raise BadSettings(f"{path}: unknown setting {min(unknown)!r}{_suggest_name(min(unknown), known)}")
    return content


def _as_text(name: str, value: Any) -> str:
    """Return a value of a flag or of the file in the notation of the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_as_text(name, item) for item in cast("list[Any]", value))
    if not isinstance(value, str | int | float | Path):
        raise BadSettings(f"{name}: must be a string, a number or a list, got {value!r}")
    return str(value).strip()


def _suggest_name(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, sorted(known), 1, cutoff=0.7)
    return f"; did you mean {nearest[0]}?" if nearest else "; docs/reference/settings.md lists all settings"


def _describe_error(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    cause = error.get("ctx", {}).get("error")
    message = str(cause) if cause else error["msg"].replace("Input should be", "must be")
    return f"{name}: {message}" if name in SECRET_SETTINGS else f"{name}: {message}, got {error['input']!r}"
