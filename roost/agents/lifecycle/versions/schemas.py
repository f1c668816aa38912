"""API shapes of versions, as the reference service's clients expect them."""

from collections.abc import Mapping, Sequence

from roost.agents.lifecycle.versions import model
from roost.agents.lifecycle.versions.model import VersionCheck, VersionChoices
from roost.web.schemas import ApiSchema


class AvailableVersions(ApiSchema):
    current_version: str
    available_versions: Sequence[str]
    available_versions_per_engine: Mapping[str, Sequence[str]]
    engine: str


class UpdateCheck(ApiSchema):
    current_version: str
    latest_version: str
    update_available: bool


def available_versions(choices: VersionChoices) -> AvailableVersions:
    return AvailableVersions(
        current_version=choices.current,
        available_versions=choices.versions,
        available_versions_per_engine=choices.per_engine,
        engine=choices.engine,
    )


def update_check(check: VersionCheck) -> UpdateCheck:
    newer = model.version_key(check.latest) > model.version_key(check.current)
    return UpdateCheck(current_version=check.current, latest_version=check.latest, update_available=newer)
