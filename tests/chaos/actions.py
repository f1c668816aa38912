"""The operations that chaos interrupts: each knows the states in which it may leave the workspace."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from tests.chaos.deployment import Deployment, Tree, read_tree
from tests.journeys.server_process import until

FILES = 60
_KEPT_SHARE = 0.3
"""Share of the resets after which the state from before is restored from its snapshot."""
_FILL = """
chmod -R u+w . && find . -mindepth 1 -delete
for i in $(seq {files}); do
  [ -d d$((i % 5)) ] || mkdir d$((i % 5)) {name}$((i % 5))
  echo {name} > d$((i % 5))/$i; echo {name}$((i / 9)) > {name}$((i % 5))/$i
done
mkdir closed empty-{name}; echo {name} > closed/file; chmod 500 closed; ln -s d1/{name} link
[ {even} = 0 ] && mkdir swap && echo x > swap/{name} || echo {name} > swap
head -c 600000 /dev/urandom > large; echo '#!/bin/sh' > tool; chmod 755 tool
"""


class Action(ABC):
    """One operation: `prepare` it, `run` it in a thread, whatever becomes of it, and `check` what is left."""

    stages: ClassVar[bool] = False
    """Whether it changes a workspace in steps, through the staging folder."""
    victims: ClassVar[Sequence[str]] = ("server", "container", "both")
    """The processes whose death interrupts it."""

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        self.deployment = deployment
        self.seconds = 0.0
        """Duration of the last run that succeeded."""
        self.is_done = False
        """Whether the last run succeeded, so that its effect must not be lost."""
        self._chance = chance
        self._old: Tree = {}
        self._new: Tree = {}
        self._fills = 0

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def run(self) -> bool:
        """Run the operation, and return whether it succeeded. Raises httpx.HTTPError."""

    def await_recovery(self) -> None:  # noqa: B027 - most operations end with an answer
        """Wait for what a server that runs on does later by itself."""

    def check(self) -> None:
        """Check that the workspace is in one of the two states, in the new one if the operation succeeded."""
        found = self.deployment.tree()
        assert found in (self._old, self._new), f"a mixture: {_differences(found, self._old, self._new)}"
        assert found == self._new or not self.is_done, "a change that succeeded is lost"

    def agents(self) -> set[str]:
        """Return the agents whose containers take part."""
        return {self.deployment.agent_id}

    def _fill(self) -> Tree:
        """Replace everything in the workspace, and return what it holds."""
        self._fills += 1
        name = f"n{self._chance.randrange(1 << 30)}x"
        self.deployment.shell(_FILL.format(name=name, files=FILES, even=self._fills % 2))
        return self.deployment.tree()


class Sync(Action):
    def prepare(self) -> None:
        self._old = self._new = self._fill()

    def run(self) -> bool:
        return self.deployment.send("POST", f"/agents/{self.deployment.agent_id}/snapshots/sync").is_success


class Reset(Action):
    stages = True

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._cid = ""

    def prepare(self) -> None:
        self._new = self._fill()
        self._cid = self.deployment.sync()
        self._old = self._fill()

    def run(self) -> bool:
        path = f"/agents/{self.deployment.agent_id}/snapshots/reset"
        return self.deployment.send("POST", path, json={"snapshotCid": self._cid}).is_success

    def check(self) -> None:
        super().check()
        if self.deployment.tree() == self._new and self._chance.random() < _KEPT_SHARE:
            self._return_to_old()

    def _return_to_old(self) -> None:
        """Check that the state before the reset is kept as a snapshot."""
        path = f"/agents/{self.deployment.agent_id}/snapshots"
        self.deployment.sync()
        kept = self.deployment.get("GET", path)["snapshots"][0]
        assert kept["trigger"] == "reset", f"the state before the reset is lost: {kept}"
        self.deployment.get("POST", f"{path}/reset", json={"snapshotCid": kept["snapshotCid"]})
        assert self.deployment.tree() == self._old, "the snapshot before the reset is not the state before it"


class Push(Action):
    stages = True

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._clone = deployment.folder / "clone"
        deployment.sync()
        deployment.git("clone", "-q", "URL", self._clone)
        self._git = ("-C", self._clone)

    def prepare(self) -> None:
        self._old = self._fill()
        self.deployment.git(*self._git, "fetch", "-q", "URL", "main")
        self.deployment.git(*self._git, "reset", "-q", "--hard", "FETCH_HEAD")
        files = read_tree(self._clone)
        assert _files(files) == _files(self._old), "the repository differs from the workspace"
        for path, (kind, _, _) in files.items():
            if kind == "file" and self._chance.random() < 0.5:
                if self._chance.random() < 0.2:
                    (self._clone / path).unlink()
                else:
                    (self._clone / path).write_text(f"pushed {self._chance.random()}")
        for number in range(20):
            folder = self._clone / f"new{number % 3}" / "inner"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(number)).write_text("new")
        self.deployment.git(*self._git, "add", "-A")
        self.deployment.git(*self._git, "commit", "-qm", "pushed")
        self._new = _after_push(self._old, read_tree(self._clone))

    def run(self) -> bool:
        return self.deployment.try_git(*self._git, "push", "-q", "URL", "HEAD:main").returncode == 0

    def await_recovery(self) -> None:
        """Wait until the server has finished or undone an interrupted push, as it tells the client."""
        until(lambda: not self._is_recorded())

    def check(self) -> None:
        super().check()
        old, new = self.deployment.git(*self._git, "rev-parse", "HEAD^", "HEAD").split()
        is_pushed = self.deployment.tree() == self._new
        head = self.deployment.bare("rev-parse", "refs/heads/main")
        assert head == (new if is_pushed else old), "main is not the commit of the workspace"
        assert not self._is_recorded(), "the push is still recorded"

    def _is_recorded(self) -> bool:
        return bool(self.deployment.bare("for-each-ref", "refs/roost"))


class Fork(Action):
    """Its agent is there whole, or not at all."""

    stages = True

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._cid = ""

    def prepare(self) -> None:
        self._old = self._new = self._fill()
        self._cid = self.deployment.sync()

    def run(self) -> bool:
        return self.deployment.send("POST", "/agents", json={"name": "fork", "snapshotCid": self._cid}).is_success

    def check(self) -> None:
        super().check()
        assert self.agents() or not self.is_done, "a fork that succeeded is lost"
        for agent_id in self.agents():
            found = self.deployment.tree(agent_id)
            assert found == self._new, f"the fork has other files: {_differences(found, self._new, {})}"
            (snapshot,) = self.deployment.get("GET", f"/agents/{agent_id}/snapshots")["snapshots"]
            assert (snapshot["snapshotCid"], snapshot["trigger"]) == (self._cid, "fork")
            assert self.deployment.sync(agent_id) == self._cid
            self.deployment.get("DELETE", f"/agents/{agent_id}")

    def agents(self) -> set[str]:
        return self.deployment.agents() - {self.deployment.agent_id}


def _files(tree: Tree) -> Tree:
    """Return what Git knows of a tree."""
    return {path: (kind, mode & 0o100, content) for path, (kind, mode, content) in tree.items() if kind != "folder"}


def _after_push(old: Tree, clone: Tree) -> Tree:
    """Return the workspace after a push: folders of before stay, and unchanged files keep their modes."""
    new = {path: entry for path, entry in old.items() if entry[0] == "folder"}
    for path, (kind, mode, content) in clone.items():
        if kind == "folder":
            new.setdefault(path, ("folder", 0o755, ""))
            continue
        for gone in [one for one in new if one == path or one.startswith(f"{path}/")]:
            del new[gone]
        known = old.get(path)
        is_same = known is not None and _files({path: known}) == _files({path: (kind, mode, content)})
        new[path] = known if known and is_same else (kind, mode and (0o755 if mode & 0o100 else 0o644), content)
    return new


def _differences(found: Tree, *states: Tree) -> Sequence[str]:
    """Describe how a tree differs from each state."""
    return [
        f"{len(wrong)} paths from one state, {sorted(wrong)[:5]}"
        for state in states
        for wrong in [{path for path in found.keys() | state.keys() if found.get(path) != state.get(path)}]
    ]
