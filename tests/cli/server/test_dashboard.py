"""`roost dashboard`, and the link that `roost up` prints."""

import webbrowser
from pathlib import Path

import pytest

from roost.cli.server import up
from roost.cli.server.dashboard import open_window
from roost.drivers.runtime.fake import FakeRuntime
from tests.cli.terminal import FakeServer
from tests.support.server import running

LINK = f"http://localhost:8642/login#code=rst_login_{'0f' * 32}"
MADE = (201, {"url": LINK, "expiresAt": "2026-01-02T03:14:05.000006Z"})


class RecordingBrowser(webbrowser.BackgroundBrowser):
    """A browser with windows, which remembers what it opened."""

    def __init__(self, works: bool = True) -> None:
        super().__init__("browser")
        self.works, self.opened = works, list[str]()

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.opened.append(url)
        return self.works


@pytest.mark.parametrize(
    ("options", "works", "stdout", "role"),
    [
        ((), True, "Opened http://localhost:8642/\n", "owner"),
        (("--role", "editor"), False, f"{LINK}\n", "editor"),
        (("--print", "--role", "viewer"), True, f"{LINK}\n", "viewer"),
    ],
)
def test_it_opens_or_prints_a_link(
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    works: bool,
    stdout: str,
    role: str,
) -> None:
    browser = RecordingBrowser(works)
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    server.answers["POST /v0/session/links"] = MADE
    done = server.run("dashboard", *options)
    assert (done.exit_code, done.stdout) == (0, stdout)
    assert browser.opened == ([] if "--print" in options else [LINK])
    assert server.bodies("POST /v0/session/links") == [{"role": role}]


def test_it_signs_all_browsers_out(server: FakeServer) -> None:
    server.answers["DELETE /v0/session/all"] = (200, {"ended": 2})
    done = server.run("dashboard", "--sign-out")
    assert (done.exit_code, done.stdout) == (0, "Browser sessions ended: 2\n")
    assert [line for line, _, _ in server.requests] == ["DELETE /v0/session/all"]
    server.answers["DELETE /v0/session/all"] = (200, {"ended": 1, "agentIds": ["a1", "a2"]})
    assert "which still work: a1, a2." in server.run("dashboard", "--sign-out").stdout


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        ((404, {"error": "Not found"}), 5, "has no dashboard"),
        ((403, {"error": "Permission denied"}), 4, "Permission denied"),
    ],
)
def test_why_there_is_no_link(server: FakeServer, answer: tuple[int, dict[str, str]], code: int, told: str) -> None:
    server.answers["POST /v0/session/links"] = answer
    done = server.run("dashboard")
    assert (done.exit_code, told in done.stderr, done.stdout) == (code, True, "")
    assert server.run("dashboard", "--role", "admin").exit_code == 2


def test_a_browser_of_the_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the terminal away from the server."""
    for browser in (webbrowser.GenericBrowser("w3m"), webbrowser.Elinks("elinks")):
        monkeypatch.setattr(type(browser), "open", pytest.fail)
        monkeypatch.setattr(webbrowser, "get", lambda browser=browser: browser)
        assert not open_window(LINK)

    def find_none() -> None:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "get", find_none)
    assert not open_window(LINK)


async def test_the_server_prints_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path / "data", runtime=FakeRuntime(tmp_path / "run")) as server:
        _, caller = await up._ensure_key(server.roost)
        await up._present_dashboard(server.roost, caller, opens_browser=True)
        shown = capsys.readouterr().out
        assert f"http://localhost:{server.port}/login#code=rst_login_" in shown
        code = shown.partition("#code=")[2].split()[0]
        answer = await server.client(host="localhost").post("/v0/session", json={"code": code})
        assert answer.json()["session"]["role"] == "owner"
