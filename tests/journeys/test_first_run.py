"""The first steps of a user: start the server, talk to the first agent, stop, start again."""

import asyncio
import re
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.async_api import expect

from tests.dashboard.browser import chromium
from tests.journeys.guide import GuideRunner
from tests.journeys.server_process import ServerProcess, until, up

ROOT = Path(__file__).parents[2]
READY = "The first agent is ready after"

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def test_the_first_agent_answers_and_is_found_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as server:
        until(lambda: "Press Ctrl-C" in server.text())
        (agent,) = server.agents()
        assert (agent["engine"], agent["status"]) == ("openclaw", "running"), server.text()
        said = server.roost("chat", agent["agentId"], "Good morning")
        assert said.returncode == 0, said.stderr
        assert "Good morning" in said.stdout
        assert "stand-in" in said.stdout
        asyncio.run(_talk_in_a_browser(server.roost("dashboard", "--print").stdout.strip(), "Good evening"))
        for page in ("README.md", "docs/quickstart.md", "docs/tutorial.md"):
            _compare_start(page, server.text())
        _follow_the_quickstart(server, tmp_path, agent["agentId"])
        server.roost("agents", "exec", agent["agentId"], "--", "sh", "-c", "echo kept > kept.txt")
        wardens = server.warden_pids()
        assert len(wardens) == 1
        assert server.stop() == 0
        until(lambda: not server.warden_pids())
        assert not Path(f"/proc/{wardens[agent['agentId']]}").exists()

        server.start()
        until(lambda: server.agents()[0]["status"] == "running")
        assert [one["agentId"] for one in server.agents()] == [agent["agentId"]]
        assert server.roost("agents", "exec", agent["agentId"], "cat kept.txt").stdout == "kept\n"
        assert "stand-in" in server.roost("chat", agent["agentId"], "Hello again").stdout


def test_hermes_too_and_both_use_tools_for_real(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        for engine, tool in (("hermes", "terminal"), ("openclaw", "exec")):
            agent = server.create(f"A {engine}", engine)
            said = server.roost("chat", f"A {engine}", "Are you there?")
            assert "Are you there?" in said.stdout, said.stderr
            asyncio.run(_talk_in_a_browser(server.roost("dashboard", "--print").stdout.strip(), f"Hi {engine}"))
            order = f'/tool {tool} {{"command": "echo from {engine} > made.txt"}}'
            assert server.roost("chat", agent["agentId"], order).returncode == 0
            with server.agent_client(agent) as own:
                made = until(lambda own=own: _text(own, "made.txt"), 30)
            assert made == f"from {engine}\n"


def _compare_start(page: str, printed: str) -> None:
    """Assert that the start prints each line that a page shows, with other ids, folders, times and ports."""
    (block,) = (one for one in re.findall(r"^```\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S) if READY in one)
    shown = re.sub(r"rst_login_\.\.\.|/srv/roost/\.roost|\bjhe6vnjj2z84gp4k\b", "@", block)
    shown = re.sub(r"8642|[0-9]+\.[0-9] s\.", "@", shown.replace(".venv/bin/roost chat @", "@ chat @"))
    for line in filter(None, shown.splitlines()):
        pattern = re.escape(line).replace("@", ".+")
        assert re.search(f"^{pattern}$", printed, re.M), f"{page}: {line}\n{printed}"


def _follow_the_quickstart(server: ServerProcess, folder: Path, agent_id: str) -> None:
    with server.client() as client:
        (gateway,) = client.get("/v3/gateways", headers={"Host": f"api.localhost:{httpx.URL(server.url).port}"}).json()[
            "data"
        ]["rows"]
    guide = GuideRunner(server, folder, q2gwmtux4t95muhx=gateway["domain"], jhe6vnjj2z84gp4k=agent_id)
    guide.follow("../quickstart.md", "5. Store a file")
    guide.follow("../quickstart.md", "6. Use the APIs", KEY=server.session["token"])
    (folder / "a.txt").write_text("hi\n")
    guide.follow("coming-from-pinata.md", "Other clients", KEY=server.session["token"])


async def _talk_in_a_browser(link: str, text: str) -> None:
    """Open the link and talk to the agent that Home offers; the answer streams through its engine."""
    async with chromium() as browser:
        page = await browser.new_page()
        await page.goto(link)
        await page.get_by_label("Message", exact=True).fill(text)
        await page.get_by_role("button", name="Send").click()
        answer = page.get_by_role("article").last
        await expect(answer.get_by_text(text)).to_be_visible(timeout=60_000)
        await expect(answer.get_by_text("stand-in")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)


def _text(own, path: str) -> str | None:
    answer = own.get("/v0/files", params={"path": path})
    return answer.text if answer.status_code == 200 else None


def test_two_servers_do_not_share_a_data_folder(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        second = ServerProcess(tmp_path / "data", "--no-first-agent")
        with pytest.raises(AssertionError, match="Another server runs"):
            second.start()
        assert server.agents() == []
