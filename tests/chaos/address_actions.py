"""Operations on routes and domains that chaos interrupts: no half table, and no name with two owners."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2 as httpx

from tests.chaos.actions import Action
from tests.chaos.deployment import Deployment

_PORT = 3999
"""No program listens there: a request that is led to it is answered with 502."""
_HOLDERS = "SELECT name FROM domains WHERE status <> 'pending_ownership' GROUP BY name HAVING count(*) > 1"
_HALF = "SELECT id FROM domains WHERE (holder IS NULL) <> (status = 'pending_ownership')"


class Replace(Action):
    """Replaces all routes of the agent."""

    victims = ("server",)

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._path = f"/agents/{deployment.agent_id}/port-forwarding"
        self._tables: list[Sequence[dict[str, Any]]] = [(), ()]

    def prepare(self) -> None:
        self._tables = [self._make_table("a"), self._make_table("b")]
        self.deployment.get("PUT", self._path, json={"mappings": self._tables[0]})

    def run(self) -> bool:
        return self.deployment.send("PUT", self._path, json={"mappings": self._tables[1]}).is_success

    def check(self) -> None:
        found = self.deployment.get("GET", self._path)["mappings"]
        assert found in self._tables[self.is_done :], f"a mixture of two tables, or the one before: {found}"
        host = f"{self.deployment.agent_id}.agents.localhost"
        for table in self._tables:
            answer = self.deployment.visit(host, table[0]["pathPrefix"])
            assert (answer.status_code == 502) is (found == table), f"the edge has another table: {answer}"

    def _make_table(self, name: str) -> Sequence[dict[str, Any]]:
        number = self._chance.randrange(1 << 30)
        prefixes = [f"/{name}{number}-{index}" for index in range(10)]
        return [{"pathPrefix": prefix, "port": _PORT, "protected": False} for prefix in sorted(prefixes)]


class Verify(Action):
    """Verifies one name for an agent and for a storage gateway at the same time, or removes the one that has it."""

    victims = ("server",)

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        gateway = deployment.get("GET", "/v3/gateways")["data"]["rows"][0]["id"]
        self._folders = (f"/agents/{deployment.agent_id}/domains", f"/v3/gateways/{gateway}/custom_domain")
        self._paths: Sequence[str] = ()
        self._name = ""
        self._removes = False

    def prepare(self) -> None:
        self._name = f"n{self._chance.randrange(1 << 40)}.example.com"
        body = {"customDomain": self._name, "port": _PORT, "protected": False}
        agents = self.deployment.get("POST", self._folders[0], json=body)["domain"]["id"]
        gateways = self.deployment.get("POST", self._folders[1], json={"domain": self._name})["data"][
            "custom_domain_id"
        ]
        self._paths = (f"{self._folders[0]}/{agents}", f"{self._folders[1]}/{gateways}")
        challenge = self.deployment.get("POST", f"{self._folders[0]}/challenge", json={"customDomain": self._name})
        self.deployment.set_text(challenge["name"], challenge["value"])
        self._removes = self._chance.random() < 0.3
        if self._removes:
            self.deployment.get("POST", f"{self._paths[0]}/verify")

    def run(self) -> bool:
        if self._removes:
            return self.deployment.send("DELETE", self._paths[0]).is_success
        with ThreadPoolExecutor(2) as threads:
            return sum(answer == 200 for answer in threads.map(self._verify, self._paths)) == 1

    def check(self) -> None:
        assert not self.deployment.rows(_HOLDERS), "a name has two owners"
        assert not self.deployment.rows(_HALF), "a name is held without proof, or proven without being held"
        verified = self.deployment.rows(
            "SELECT owner_kind FROM domains WHERE name = :name AND holder IS NOT NULL", name=self._name
        )
        is_held = bool(verified)
        assert is_held is not self._removes or not self.is_done, "what succeeded is lost"
        expected = {(): {404}, (("agent",),): {502}, (("storage_gateway",),): {404}}[tuple(verified)]
        answer = self.deployment.visit(self._name, "/")
        assert answer.status_code in expected, f"the edge has another owner: {answer.text}"
        assert ("ERR_ID" in answer.text) is (tuple(verified) == (("storage_gateway",),))
        for path in self._paths:
            self.deployment.send("DELETE", path)
        assert not self.deployment.rows("SELECT id FROM domains WHERE name = :name", name=self._name)

    def _verify(self, path: str) -> int:
        try:
            return self.deployment.send("POST", f"{path}/verify").status_code
        except httpx.HTTPError:  # the server was killed
            return 0
