"""Signing in and out of the dashboard, which chaos interrupts: a link works once, and the end of a session is final."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import httpx2 as httpx

from tests.chaos.actions import Action

_SESSION = "/v0/session"


class SessionAction(Action):
    victims: ClassVar[Sequence[str]] = ("server",)

    def prepare(self) -> None:
        self.deployment.execute("DELETE FROM browser_sessions")
        made = self.deployment.get("POST", "/session/links", json={"role": "owner"})
        self._code = made["url"].partition("#code=")[2]

    def _open(self) -> httpx.Response:
        return self._send("POST", json={"code": self._code})

    def _is_open(self, cookie: str) -> bool:
        return self._send("GET", headers={"Cookie": cookie}).json()["session"] is not None

    def _send(self, method: str, **options: Any) -> httpx.Response:
        """Send a request as a page of the dashboard does."""
        page = {"Origin": f"http://localhost:{self.deployment.port}", "Sec-Fetch-Site": "same-origin"}
        return self.deployment.visit(
            "localhost", _SESSION, method, headers=page | options.pop("headers", {}), **options
        )


class SignIn(SessionAction):
    """Uses a one-time link in two browsers at the same time."""

    def prepare(self) -> None:
        super().prepare()
        self._cookies: list[str] = []

    def run(self) -> bool:
        with ThreadPoolExecutor(2) as threads:
            return 200 in list(threads.map(self._try_to_open, range(2)))

    def check(self) -> None:
        had_answer = bool(self._cookies)
        ((had_session,),) = self.deployment.rows("SELECT count(*) FROM browser_sessions")
        assert self._try_to_open() == (401 if had_session else 200), f"a link that opened {had_session} sessions"
        assert self._try_to_open() == 401, "a used link opens a session"
        assert self.deployment.rows("SELECT count(*) FROM browser_sessions") == [(1,)]
        assert not self.deployment.rows("SELECT digest FROM session_links"), "a used link is kept"
        assert len(self._cookies) == (had_answer or not had_session)
        assert all(map(self._is_open, self._cookies)), "a session that was opened is lost"

    def _try_to_open(self, _browser: int = 0) -> int:
        try:
            answer = self._open()
        except httpx.HTTPError:  # the server was killed
            return 0
        if answer.is_success:
            self._cookies.append(_cookie_of(answer))
        return answer.status_code


class SignOut(SessionAction):
    """Ends a session."""

    def prepare(self) -> None:
        super().prepare()
        opened = self._open()
        self._cookie, token = _cookie_of(opened), opened.json()["session"]["csrfToken"]
        self._headers = {"Cookie": self._cookie, "X-CSRF-Token": token}
        assert self._is_open(self._cookie)

    def run(self) -> bool:
        return self._send("DELETE", headers=self._headers).is_success

    def check(self) -> None:
        is_over = not self.deployment.rows("SELECT digest FROM browser_sessions")
        assert is_over or not self.is_done, "a session that was ended is back"
        assert self._is_open(self._cookie) is not is_over
        assert self._send("DELETE", headers=self._headers).status_code == (401 if is_over else 204)
        assert not self._is_open(self._cookie)


def _cookie_of(answer: httpx.Response) -> str:
    return answer.headers["set-cookie"].partition(";")[0]
