"""Answers of the server with hostile texts where it has other people's, also where it would refuse to store them.

So pages are tested without the server's checks: an engine, a chat platform or a registry may tell anything.
"""

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any

from playwright.async_api import Error, Page, Route

from tests.contract.test_devices import connect_device
from tests.dashboard.hostile_texts import BEACON, CONTROLS, HACK, TEXTS
from tests.support.server import RunningServer

MARKUP = f"{TEXTS[1]}{TEXTS[0]}{TEXTS[6]}{TEXTS[8]}{CONTROLS}\N{RIGHT-TO-LEFT OVERRIDE}gpj"
ADDRESS = f"javascript:{HACK}//"
FREE_TEXTS = frozenset(
    (
        *("authorName", "botUsername", "category", "changeSummary", "changelog", "clientId", "clientMode"),
        *("customDomain", "defaultEmoji", "defaultVibe", "description", "detail", "displayName", "domain", "emoji"),
        *("error", "filename", "gitPath", "gitRef", "gitUrl", "keyName", "key_name", "label", "lastError", "license"),
        *("longDescription", "message", "model", "name", "overview", "partnerName", "path", "pathPrefix", "platform"),
        *(
            "readme",
            "reason",
            "remoteIp",
            "statusReason",
            "subdomain",
            "submittedBy",
            "summary",
            "text",
            "title",
            "userAgent",
        ),
        *("value", "vibe", "warning"),
    )
)
"""Fields whose texts come from others."""
LISTS = frozenset({"models", "allowFrom", "allowed", "tags"})
"""Fields with lists of such texts."""
API = re.compile(r"/v[03]/(?!session)")
SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
TELEGRAM = "987654321:AAExampleTokenThatIsunwell0123456789"

MODEL_SERVERS = {
    "available": True,
    "servers": [
        {"provider": "ollama", "label": "Ollama", "baseUrl": f"{BEACON}/v1", "models": ["qwen3:8b", "another"]},
    ],
}


class HostileAnswers:
    """Replaces texts in what a page reads; `replaced` counts them by field."""

    def __init__(self, page: Page, text: str) -> None:
        self._page, self._text = page, text
        self.replaced = Counter[str]()

    async def start(self) -> None:
        await self._page.route(API, self._answer_unless_left)

    async def _answer_unless_left(self, route: Route) -> None:
        with suppress(Error):  # the page was left meanwhile; one that is there would show none of its texts
            await self._answer(route)

    async def _answer(self, route: Route) -> None:
        if "/events" in route.request.url:
            await route.fulfill(body=self._events(), content_type="text/event-stream")
            return
        if route.request.url.endswith("/watch"):  # a stream, which has no end to wait for
            state = self.replace(await (await route.fetch(url=route.request.url.removesuffix("/watch"))).json())
            await route.fulfill(body=f"data: {json.dumps(state)}\n\n", content_type="text/event-stream")
            return
        if route.request.method != "GET" and "/query" not in route.request.url:
            await route.fallback()
            return
        response = await route.fetch()
        if "json" not in response.headers.get("content-type", ""):
            await route.fulfill(response=response)
            return
        await route.fulfill(response=response, json=self.replace(await response.json()))

    def replace(self, value: Any, field: str = "") -> Any:
        """Return JSON with the hostile text in place of other people's texts."""
        if isinstance(value, dict):
            return {name: self.replace(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.replace(each, field if field in LISTS else "") for each in value]
        if isinstance(value, str) and field in FREE_TEXTS | LISTS:
            self.replaced[field] += 1
            return f"{self._text} {field}"
        return value

    def _events(self) -> str:
        """Return the events of a tenant whose every event tells hostile texts, and a heartbeat."""
        at, texts = "2026-01-02T03:04:05Z", dict.fromkeys(("name", "reason", "error", "path", "state"), self._text)
        events = [
            {"id": f"{number}", "type": kind, "at": at, "agentId": None, "data": texts, "subject": subject}
            for number, kind in enumerate(("agent.changed", "task.changed", "secret.changed", "file.added"), start=1)
            for subject in [{"kind": kind.partition(".")[0], "id": self._text}]
        ]
        told = "".join(f"id: {one['id']}\nevent: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        return f"{told}id: 9\n: heartbeat\n\n"


def tool_use(text: str, state: str = "done") -> dict[str, str]:
    """Return the use of a tool with hostile id, name, arguments and result."""
    return {"id": text, "name": text, "arguments": text, "state": state, "result": text}


def answer_with_tools(text: str) -> str:
    """Return the stream of an answer in which the agent uses a tool and says a text."""
    uses = [("tool", tool_use(text, "running")), ("tool", tool_use(text))]
    events = [
        *uses,
        ("text", {"text": f"{text}\n\nend of it", "replaces": False}),
        ("end", {"state": "complete", "error": None}),
    ]
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)


def history_with_tools(text: str) -> dict[str, Any]:
    """Return a conversation in which the agent used a tool and said a text."""
    stored = {"sentAt": None, "isStopped": False}
    asked = {"id": "1", "role": "user", "text": text, "tools": [], **stored}
    said = {
        "id": "2",
        "role": "assistant",
        "text": f"{text}\n\nend of it",
        "tools": [tool_use(text, "failed")],
        **stored,
    }
    return {"conversationId": "chat-1", "messages": [asked, said], "isAnswering": False}


async def fill_tenant(server: RunningServer) -> dict[str, Any]:
    """Give the tenant one of everything; return its agent."""
    client = server.client(server.key(), "localhost")

    async def post(path: str, **options: Any) -> Any:
        answer = await client.post(path, **options)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    agent = (await post("/v0/agents", json={"name": "Ada", "description": "Writes"}))["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    await post(f"{path}/domains", json={"subdomain": "of-ada"})
    routes = {"mappings": [{"pathPrefix": "/site", "port": 3000, "protected": False}]}
    assert (await client.put(f"{path}/port-forwarding", json=routes)).is_success
    task = await post(f"{path}/tasks", json={"name": "Report", "payload": "Report", "schedule": "every 90m"})
    await post(f"{path}/tasks/{(task.get('task') or task)['id']}/run")
    await post(f"{path}/channels/telegram", json={"botToken": TELEGRAM})
    await connect_device(server.agent_client(agent), "phone", platform="ios", displayName="Phone")
    secret = await post("/v0/secrets", json={"name": "PLACE", "value": "here", "type": "variable"})
    await post(f"{path}/secrets", json={"secretIds": [secret["secret"]["id"]]})
    await post(f"{path}/snapshots/sync")
    await post("/v3/gateways", json={"domain": "mine"})
    group = (await post("/v3/groups/private", json={"name": "Manuals"}))["data"]["id"]
    file = {"file": ("boiler.txt", b"The boiler is serviced in May.")}
    stored = await post("/v3/files", files=file, data={"network": "private", "group_id": group})
    await post(f"/v3/vectorize/files/{stored['data']['id']}")
    price = {"asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "pay_to": SELLER, "network": "base"}
    price |= {"amount": "10000", "description": "A file"}
    await post("/v3/x402/payment_instructions", json={"name": "Articles", "payment_requirements": [price]})
    return {**agent, "group": group}
