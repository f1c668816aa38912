"""Skills of a file: which version of the library each means, and what brings it there.

The library is asked first, then the hub; a local folder is its CID, which is computed here as the server does.
"""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.model import parse_cid_spellings
from roost.agents.library.skills.skill_file import parse_skill_file
from roost.agents.library.skills.stored_bundle import PROGRAM_MODE, without_marker
from roost.cli.client.session import path_segment
from roost.cli.fleet.document import FleetSkill
from roost.cli.fleet.live import FleetRequest, FleetServer, Record
from roost.cli.library.skill_files import read_bundle
from roost.cli.storage.local_files import build_tree, nest_trees
from roost.core.problem import InvalidInput
from roost.storage.content.unixfs.importer import build_file
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025


class SkillNotDeclared(Exception):  # noqa: N818 - describes the reference
    """The skill is neither in the library nor in the hub, or its folder is no skill."""


@dataclass(frozen=True)
class ResolvedSkill:
    """A skill of a file and the version that it means.

    label: what the file calls it. key: its slug, else its name; None if only the server knows. cid: None if any version
    that is attached will do, until one is in the library. preparation: the request that brings it into the library.
    """

    label: str
    key: str | None
    cid: str | None
    version: str | None = None
    is_pinned: bool = True
    acknowledge: bool = False
    origin: str = "library"
    preparation: FleetRequest | None = None

    def is_attached(self, record: Record) -> bool:
        """Return whether an attached skill is this one, in any version."""
        return record["skillCid"] == self.cid or (self.key is not None and self.key == skill_key(record))

    def is_satisfied(self, record: Record) -> bool:
        """Return whether an attached skill is this one in a version that will do."""
        return record["skillCid"] == self.cid or (not self.is_pinned and self.is_attached(record))


def skill_key(record: Record) -> str:
    """Return what identifies a skill for a person: its slug, else its name."""
    return str(record["slug"] or record["name"])


class SkillResolver:
    """Resolves skills against the library of the server, which it reads once."""

    def __init__(self, server: FleetServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._library: Sequence[Record] | None = None

    def forget_library(self) -> None:
        """Read the library again, which has changed."""
        self._library = None

    def resolve(self, skill: FleetSkill) -> ResolvedSkill:
        """Return what a skill of a file means. Raises SkillNotDeclared, FleetRequestRefused."""
        if skill.path is not None:
            return self._resolve_folder(skill, skill.path)
        if skill.cid is not None:
            return self._resolve_cid(skill, skill.cid)
        return self._resolve_name(skill)

    def _list_library(self) -> Sequence[Record]:
        if self._library is None:
            self._library = cast("Sequence[Record]", self._server.get("/v0/skills")["skills"])
        return self._library

    def _resolve_name(self, skill: FleetSkill) -> ResolvedSkill:
        """Resolve a slug or a name: the newest version, or one of a number or a CID."""
        found = [one for one in self._list_library() if skill_key(one) == skill.label or one["name"] == skill.name]
        for record in found[:1]:
            versions = self._list_versions(record["skillId"]) if skill.version else [record]
            for one in versions:
                if skill.version in {None, one["version"], one["skillCid"]}:
                    return self._resolved(skill, one)
        if skill.slug is None:
            raise SkillNotDeclared(f"the library has no skill {skill.label!r}; `roost skills list` shows all")
        return self._resolve_hub(skill, skill.slug)

    def _resolve_hub(self, skill: FleetSkill, slug: str) -> ResolvedSkill:
        owner, _, name = slug.partition("/")
        query = f"?version={quote(skill.version, safe='')}" if skill.version else ""
        found = self._server.find(f"/v0/hub/{path_segment(owner)}/{path_segment(name)}{query}")
        if found is None:
            version = f" in version {skill.version}" if skill.version else ""
            raise SkillNotDeclared(f"neither the library nor the hub has {slug}{version}")
        record = found["skill"]
        body = {"version": record["version"], "acknowledge": skill.acknowledge}
        path = f"/v0/hub/{path_segment(record['hubSkillId'])}/install"
        return self._resolved(skill, record, "hub", FleetRequest("POST", path, body))

    def _resolve_cid(self, skill: FleetSkill, cid: str) -> ResolvedSkill:
        if (found := self._find_version(cid)) is not None:
            return self._resolved(skill, found)
        request = FleetRequest("POST", "/v0/skills", {"skillCid": cid})
        return ResolvedSkill(skill.label, None, cid, None, True, skill.acknowledge, "stored folder", request)

    def _resolve_folder(self, skill: FleetSkill, path: str) -> ResolvedSkill:
        folder = self._folder / Path(path).expanduser()
        if not folder.exists():
            raise SkillNotDeclared(f"{path} does not exist")
        try:
            bundle = without_marker(read_bundle(folder))
            name = parse_skill_file(bundle.files["SKILL.md"].content).name
        except InvalidInput as problem:
            raise SkillNotDeclared(f"{path}: {problem.message}") from None
        except OSError as error:
            raise SkillNotDeclared(f"{path}: {error.strerror}") from None
        cid = bundle_cid(bundle)
        if (found := self._find_version(cid)) is not None:
            return self._resolved(skill, found)
        request = FleetRequest("POST", "/v0/skills", content=_zip_bundle(bundle), media_type="application/zip")
        return ResolvedSkill(skill.label, name, cid, None, True, skill.acknowledge, "folder", request)

    def _find_version(self, cid: str) -> Record | None:
        spellings = parse_cid_spellings(cid)
        return next((one for one in self._list_versions(cid) if one["skillCid"] in spellings), None)

    def _list_versions(self, reference: str) -> Sequence[Record]:
        """List the versions of the skill with an id or a CID, none if the library has no such skill."""
        found = self._server.find(f"/v0/skills/{path_segment(reference)}/versions")
        return cast("Sequence[Record]", found["versions"] if found else ())

    def _resolved(
        self, skill: FleetSkill, record: Record, origin: str = "library", preparation: FleetRequest | None = None
    ) -> ResolvedSkill:
        is_pinned = bool(skill.version or skill.cid or skill.path)
        key, cid, version = skill_key(record), record["skillCid"], record["version"]
        return ResolvedSkill(skill.label, key, cid, version, is_pinned, skill.acknowledge, origin, preparation)


def bundle_cid(bundle: Bundle) -> str:
    """Return the CID that the library gives a bundle."""
    trees = {
        path: build_file(UNIXFS_V1_2025, file.content, PROGRAM_MODE if file.is_executable else None)
        for path, file in bundle.files.items()
    }
    return str(build_tree(nest_trees(trees), UNIXFS_V1_2025).cid)


def _zip_bundle(bundle: Bundle) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in bundle.files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (PROGRAM_MODE if file.is_executable else 0o644) << 16  # the Unix mode
            archive.writestr(entry, file.content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
