"""Shapes of versions, as the reference service's clients know them."""

from collections.abc import Mapping, Sequence

from roost.agents.versions import model
from roost.agents.versions.model import VersionCheck, VersionChoices
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


def available(choices: VersionChoices) -> AvailableVersions:
    return AvailableVersions(
        current_version=choices.current,
        available_versions=choices.versions,
        available_versions_per_engine=choices.per_engine,
        engine=choices.engine,
    )


def checked(check: VersionCheck) -> UpdateCheck:
    newer = model.order(check.latest) > model.order(check.current)
    return UpdateCheck(current_version=check.current, latest_version=check.latest, update_available=newer)
