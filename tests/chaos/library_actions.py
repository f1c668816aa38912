"""Operations on skills, the hub and templates that chaos interrupts: each takes place whole, or not at all."""

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from roost.agents.library.skills.model import FOLDER, MARKER
from tests.chaos.actions import Action
from tests.chaos.deployment import TEMPLATE_FILES, Deployment, Tree

Files = Mapping[str, bytes]


class LibraryAction(Action):
    """Changes the tenant's library, in one transaction."""

    victims = ("server",)

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._before: Sequence[str] = ()

    def _cids(self) -> Sequence[str]:
        """Return the CIDs of the skills of the library."""
        return sorted(one["skillCid"] for one in self.deployment.get("GET", "/skills")["skills"])

    def _make_files(self, name: str) -> Files:
        text = f"---\nname: {name}\ndescription: A skill\n---\n\n{self._chance.random()}\n"
        more = {f"part{number}/a.txt": f"{name} {number}".encode() for number in range(self._chance.randrange(1, 60))}
        large = self._chance.randbytes(self._chance.choice((10, 500_000)))
        return {"SKILL.md": text.encode(), "run.sh": b"#!/bin/sh\n", "large": large, **more}

    def _register(self, files: Files) -> dict[str, Any]:
        return self.deployment.get("POST", "/skills", files=_as_parts(files))["skill"]

    def _name(self) -> str:
        return f"s{self._chance.randrange(1 << 40)}"


class Register(LibraryAction):
    """Registers a folder, a zip archive, or a folder of the storage API."""

    def prepare(self) -> None:
        self._before = self._cids()
        self._files = self._make_files(self._name())
        way = self._chance.randrange(3)
        if way == 0:
            self._request: dict[str, Any] = {"files": _as_parts(self._files)}
        elif way == 1:
            self._request = {"content": _as_zip(self._files), "headers": {"Content-Type": "application/zip"}}
        else:
            self._request = {"json": {"skillCid": self.deployment.store(self._files)}}

    def run(self) -> bool:
        return self.deployment.send("POST", "/skills", **self._request).is_success

    def check(self) -> None:
        new = set(self._cids()) - set(self._before)
        assert new or not self.is_done, "a skill that was registered is lost"
        assert len(new) <= 1, f"one registration made {len(new)} versions"
        answer = self.deployment.send("POST", "/skills", **self._request)
        assert answer.status_code == (200 if new else 201), f"a repetition is refused: {answer.text}"
        skill = answer.json()["skill"]
        assert new <= {skill["skillCid"]}
        assert skill["files"] == len(self._files)
        self.deployment.get("DELETE", f"/skills/{skill['skillCid']}")
        self.deployment.drop_files()


class Install(LibraryAction):
    """Installs a skill of the hub that comes with Roost."""

    def prepare(self) -> None:
        self._before = self._cids()
        self._skill = self._chance.choice(self.deployment.hub())

    def run(self) -> bool:
        return self.deployment.send("POST", f"/hub/{self._skill['hubSkillId']}/install").is_success

    def check(self) -> None:
        new = set(self._cids()) - set(self._before)
        assert new <= {self._skill["skillCid"]}
        assert new or not self.is_done, "a skill that was installed is lost"
        installed = self.deployment.get("POST", f"/hub/{self._skill['hubSkillId']}/install")["skill"]
        assert self._cids() == sorted([*self._before, self._skill["skillCid"]])
        self.deployment.get("DELETE", f"/skills/{installed['skillId']}")


class Publish(LibraryAction):
    """Publishes a skill of the library, or withdraws it."""

    def prepare(self) -> None:
        self._skill = self._register(self._make_files(self._name()))
        self._path = f"/skills/{self._skill['skillId']}/publish"
        self._withdrawn = self.deployment.get("POST", self._path)["skill"] if self._chance.random() < 0.4 else None

    def run(self) -> bool:
        if self._withdrawn:
            return self.deployment.send("DELETE", f"/hub/{self._withdrawn['hubSkillId']}").is_success
        return self.deployment.send("POST", self._path).is_success

    def check(self) -> None:
        found = self.deployment.send("GET", f"/hub/{self._skill['name']}")
        assert found.is_success is (self._withdrawn is None) or not self.is_done, "what succeeded is lost"
        if found.is_success:
            detail = found.json()["skill"]
            assert [one["skillCid"] for one in detail["versions"]] == [self._skill["skillCid"]]
        else:
            assert found.status_code == 404, found.text
        shown = self.deployment.get("POST", self._path)["skill"]
        self.deployment.get("POST", f"/hub/{shown['hubSkillId']}/install")  # reads all files
        self.deployment.get("DELETE", f"/hub/{shown['hubSkillId']}")
        self.deployment.get("DELETE", f"/skills/{self._skill['skillId']}")


class Attach(LibraryAction):
    """Attaches, updates or detaches skills of a running agent; at rest, its workspace has what the library says."""

    stages = True
    victims: ClassVar[Sequence[str]] = ("server", "container", "both")

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._files: dict[str, Files] = {}  # by CID
        names = [self._name() for _ in range(3)]
        self._skills = [[self._add(name), self._add(name)] for name in names]
        self._path = f"/agents/{deployment.agent_id}/skills"
        self._states: Sequence[set[str]] = ()

    def _add(self, name: str) -> dict[str, Any]:
        files = self._make_files(name)
        skill = self._register(files)
        self._files[skill["skillCid"]] = files
        return skill

    def prepare(self) -> None:
        self._old = self._fill()
        old, new = ([versions[version]["skillCid"] for versions in self._skills] for version in (0, 1))
        verb = self._chance.choice(("attach", "detach", "update"))
        if verb == "attach":
            self._states = (set(), set(old))
            self._request: tuple[str, str, dict[str, Any]] = ("POST", self._path, {"json": {"skillCids": old}})
            return
        self.deployment.get("POST", self._path, json={"skillCids": old})
        after = {"detach": old[1:], "update": [new[0], *old[1:]]}[verb]
        self._states = (set(old), set(after))
        path = f"{self._path}/{self._skills[0][0]['skillId']}"
        self._request = ("DELETE", path, {}) if verb == "detach" else ("POST", f"{path}/update", {})

    def run(self) -> bool:
        method, path, options = self._request
        return self.deployment.send(method, path, **options).is_success

    def check(self) -> None:
        attached = self.deployment.get("GET", self._path)["skills"]
        states = self._states[self.is_done :]
        assert {one["skillCid"] for one in attached} in states, "half of the skills are attached, or a success is lost"
        assert all(one["synced"] for one in attached), "a skill is attached, but not in the workspace"
        wanted = {
            f"{FOLDER}/{one['name']}/{path}": hashlib.sha256(content).hexdigest()
            for one in attached
            for path, content in self._files[one["skillCid"]].items()
        }
        tree = self.deployment.tree()
        found = {path: content for path, (kind, _, content) in _below(tree, inside=True).items() if kind == "file"}
        markers = {path for path in found if path.endswith(MARKER)}
        assert markers == {f"{FOLDER}/{one['name']}/{MARKER}" for one in attached}
        assert {path: content for path, content in found.items() if path not in markers} == wanted
        assert _below(tree, inside=False) == self._old, "other files of the workspace changed"
        for one in attached:
            self.deployment.get("DELETE", f"{self._path}/{one['skillId']}")
        assert not [path for path in self.deployment.tree() if path.startswith(f"{FOLDER}/")]


class FromTemplate(LibraryAction):
    """Creates an agent from a template with a skill and tasks."""

    stages = True
    victims: ClassVar[Sequence[str]] = ("server", "container", "both")

    def prepare(self) -> None:
        self._old = self._new = self.deployment.tree()

    def run(self) -> bool:
        return self.deployment.send("POST", "/agents", json={"templateId": self.deployment.template}).is_success

    def check(self) -> None:
        super().check()
        assert self.agents() or not self.is_done, "an agent that was created is lost"
        for agent_id in self.agents():
            self._check_agent(agent_id)
            self.deployment.get("DELETE", f"/agents/{agent_id}")

    def _check_agent(self, agent_id: str) -> None:
        found = self.deployment.get("GET", f"/agents/{agent_id}")
        assert (found["template"]["slug"], found["agent"]["name"]) == (self.deployment.template, "Reader")
        assert not found["missing"], found["missing"]
        tree = self.deployment.tree(agent_id)
        for path, content in TEMPLATE_FILES.items():
            assert tree[path][2] == hashlib.sha256(content).hexdigest(), f"{path} is not that of the template"
        assert json.loads(self.deployment.read(agent_id, "manifest.json"))["agent"]["name"] == "Reader"
        (skill,) = self.deployment.get("GET", f"/agents/{agent_id}/skills")["skills"]
        assert skill["synced"]
        assert f"{FOLDER}/{skill['name']}/SKILL.md" in tree
        tasks = [one["name"] for one in self.deployment.get("GET", f"/agents/{agent_id}/tasks")["tasks"]]
        assert sorted(tasks) == ["Digest", "Report"], f"tasks are lost or doubled: {tasks}"
        triggers = [one["trigger"] for one in self.deployment.get("GET", f"/agents/{agent_id}/snapshots")["snapshots"]]
        assert triggers.count("template") == 1, triggers

    def agents(self) -> set[str]:
        return self.deployment.agents() - {self.deployment.agent_id}


def _below(tree: Tree, *, inside: bool) -> Tree:
    """Return the part of a tree that is the folder of skills, or the rest."""
    return {path: entry for path, entry in tree.items() if (f"{path}/".startswith(f"{FOLDER}/")) is inside}


def _as_parts(files: Files) -> list[tuple[str, tuple[str, bytes]]]:
    return [("file", (f"top/{path}", content)) for path, content in files.items()]


def _as_zip(files: Files) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()
