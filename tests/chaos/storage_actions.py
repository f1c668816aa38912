"""Operations on paid content and vectors that chaos interrupts: no money without its row, no half set of vectors."""

import importlib
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import httpx2 as httpx

from roost.storage.vectors.model import SEGMENT_CHUNKS
from tests.chain.payer import encode
from tests.chaos.actions import Action
from tests.chaos.deployment import Deployment
from tests.chaos.side_servers import LOST
from tests.storage.payments.payer import ASSET, SELLER, new_payer, payment_json, sign_transfer

importlib.import_module("x402.http.facilitator_client")  # takes seconds; servers are forks, which have it then
_INSTRUCTIONS = "/v3/x402/payment_instructions"
_PRICE = 10_000
_PAYMENT = "SELECT state, transaction_hash FROM payments WHERE nonce = :nonce"
_END_CLAIM = "UPDATE payments SET claimed_until = created_at WHERE nonce = :nonce"
"""What 30 seconds do."""
_SEGMENTS = "SELECT count(*) FROM vector_segments WHERE file_id = :file"
_LOST_SHARE = 0.2
_DELETED = {"state": "deleted", "chunks": 0, "chunks_done": 0}


class PaidAction(Action):
    """Changes or uses the price of a file. A price of None: the file is not for sale."""

    victims: ClassVar[Sequence[str]] = ("server",)

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        gateway = deployment.get("GET", "/v3/gateways")["data"]["rows"][0]["domain"]
        self._host = f"{gateway}.gateways.localhost"
        created = deployment.get("POST", _INSTRUCTIONS, json={"name": "articles", **_requirements(_PRICE)})
        self._instruction = f"{_INSTRUCTIONS}/{created['data']['id']}"

    def prepare(self) -> None:
        self._content = self._chance.randbytes(300_000)
        self._file = self.deployment.upload(self._content)
        self._attachment = f"{self._instruction}/cids/{self._file['cid']}"

    def check(self) -> None:
        self.deployment.get("DELETE", f"/v3/files/private/{self._file['id']}")  # with its price
        assert not self.deployment.rows("SELECT cid FROM payment_instruction_cids"), "a price of no file"

    def _visit(self, **headers: str) -> httpx.Response:
        return self.deployment.visit(self._host, f"/x402/cid/{self._file['cid']}", headers=headers)


class Price(PaidAction):
    """Sets, changes or removes the price of a file."""

    def prepare(self) -> None:
        super().prepare()
        verb = self._chance.choice(("set", "change", "remove"))
        old, new = self._chance.sample(range(1, 10**12), 2)
        self.deployment.get("PATCH", self._instruction, json=_requirements(old))
        if verb != "set":
            self.deployment.get("PUT", self._attachment)
        self._prices: Sequence[int | None] = {"set": (None, old), "change": (old, new), "remove": (old, None)}[verb]
        self._request: tuple[str, str, dict[str, Any]] = {
            "set": ("PUT", self._attachment, {}),
            "change": ("PATCH", self._instruction, {"json": _requirements(new)}),
            "remove": ("DELETE", self._attachment, {}),
        }[verb]

    def run(self) -> bool:
        method, path, options = self._request
        return self.deployment.send(method, path, **options).is_success

    def check(self) -> None:
        answer = self._visit()
        assert answer.status_code in {402, 404}, answer.text
        price = int(answer.json()["accepts"][0]["maxAmountRequired"]) if answer.status_code == 402 else None
        assert price in self._prices[self.is_done :], f"{price} is asked, of {self._prices}"
        shown = self.deployment.get("GET", f"{_INSTRUCTIONS}?cid={self._file['cid']}")["data"]["payment_instructions"]
        assert [int(one["payment_requirements"][0]["amount"]) for one in shown] == ([price] if price else [])
        super().check()


class Pay(PaidAction):
    """Presents one payment once, or twice at the same time."""

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._payer = new_payer()

    def prepare(self) -> None:
        super().prepare()
        self.deployment.get("PUT", self._attachment)
        last = LOST if self.seconds and self._chance.random() < _LOST_SHARE else "0"
        self._nonce = f"0x{self._chance.getrandbits(252):063x}{last}"
        self._payment = encode(payment_json(sign_transfer(self._payer, nonce=self._nonce)))
        self._uses = self._chance.choice((1, 2))
        self._served = 0

    def run(self) -> bool:
        with ThreadPoolExecutor(2) as threads:
            return 200 in list(threads.map(self._try_to_pay, range(self._uses)))

    def check(self) -> None:
        found = self.deployment.rows(_PAYMENT, nonce=self._nonce)
        state = found[0][0] if found else None
        assert found or self._nonce not in self.deployment.settlements(), "money moved without a row"
        assert self._served <= (state == "settled"), f"a payment that is {state} was served {self._served} times"
        if state == "settling":
            assert self._pay() == 402, "a payment is settled twice at the same time"
            self.deployment.execute(_END_CLAIM, nonce=self._nonce)
        status = self._pay()
        if status == 503:  # the answer to the settlement was lost, now
            status = self._pay()
        assert status == (402 if state == "settled" else 200), f"a payment that was {state} is answered with {status}"
        assert self._pay() == 402, "a used payment is served"
        row = self.deployment.rows(_PAYMENT, nonce=self._nonce)
        settlements = self.deployment.settlements()
        assert row == [("settled", settlements[self._nonce])], f"not as the facilitator has it: {row}"
        (total,) = self.deployment.get("GET", "/v3/x402/payments/totals")["data"]["totals"]
        assert (total["count"], total["amount"]) == (len(settlements), str(len(settlements) * _PRICE))
        super().check()

    def _pay(self) -> int:
        answer = self._visit(**{"PAYMENT-SIGNATURE": self._payment})
        self._served += answer.status_code == 200 and answer.content == self._content
        return answer.status_code

    def _try_to_pay(self, _use: int) -> int:
        try:
            return self._pay()
        except httpx.HTTPError:  # the server was killed
            return 0


class Vectorize(Action):
    """Vectorizes a file, deletes its vectors, or deletes it with them."""

    victims: ClassVar[Sequence[str]] = ("server",)

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(deployment, chance)
        self._group = deployment.get("POST", "/v3/groups/private", json={"name": "searched"})["data"]["id"]

    def prepare(self) -> None:
        self._word = f"w{self._chance.randrange(1 << 30)}x"
        words = self._chance.randrange(1_000, 40_000)
        file = self.deployment.upload(f"{self._word} ".encode() * words, group_id=self._group)["id"]
        self._file, self._vectors = f"/v3/files/private/{file}", f"/v3/vectorize/files/{file}"
        verb = self._chance.choice(("vectorize", "forget", "delete"))
        self._states = {
            "vectorize": ("none", "indexed"),
            "forget": ("indexed", "none"),
            "delete": ("indexed", "deleted"),
        }[verb]
        self._request = {
            "vectorize": ("POST", self._vectors),
            "forget": ("DELETE", self._vectors),
            "delete": ("DELETE", self._file),
        }[verb]
        if verb != "vectorize":
            self.deployment.get("POST", self._vectors)
            self.deployment.settle()  # the response to a large file may come before

    def run(self) -> bool:
        return self.deployment.send(*self._request).is_success

    def check(self) -> None:
        answer = self.deployment.send("GET", self._vectors)
        record: dict[str, Any] = answer.json()["data"] if answer.is_success else _DELETED
        assert record["state"] in self._states[self.is_done :], f"{record}, of {self._states}"
        is_indexed = record["state"] == "indexed"
        assert record["chunks"] == record["chunks_done"], f"vectors are missing: {record}"
        ((segments,),) = self.deployment.rows(_SEGMENTS, file=self._vectors.rpartition("/")[2])
        assert segments == -(-record["chunks"] // SEGMENT_CHUNKS), f"{segments} segments of {record}"
        query = f"/v3/vectorize/groups/{self._group}/query"
        matches = self.deployment.get("POST", query, json={"text": self._word})["data"]["matches"]
        assert bool(matches) is is_indexed, f"{record} has {len(matches)} matches"
        assert all(self._word in match["text"] for match in matches)
        if record["state"] != "deleted":
            self.deployment.get("DELETE", self._file)
        assert not self.deployment.rows("SELECT file_id FROM vector_segments"), "vectors of no file"


def _requirements(amount: int) -> dict[str, Any]:
    requirement = {"asset": ASSET.address, "pay_to": SELLER, "network": ASSET.network.name, "amount": str(amount)}
    return {"payment_requirements": [requirement]}
