"""A locale for tests alone: all texts but those of the API are in the catalogues, and longer ones fit."""

import mimetypes
import re
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route

from tests.dashboard.browser import BUILT, SOURCE, visiting
from tests.support.server import RunningServer

PAGES = [
    *("/", "/agents", "/agents/new", "/activity", "/system", "/skills", "/secrets", "/keys"),
    *("/storage/files", "/storage/gateways", "/storage/payments"),
    *(f"/agents/{{id}}/{name}" for name in ("overview", "chat", "tasks", "config", "settings")),
]
"""A sample of all areas; each page costs half a second."""
NAMES = ["Roost", "English", "Deutsch", "curl", "Python", "TypeScript"]
COLLECT_DATA = r"""
window.apiTexts = new Set();
const collect = (value) => {
  if (typeof value === 'string') window.apiTexts.add(value.trim());
  else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
};
const fetchPlain = window.fetch;
window.fetch = async (...call) => {
  const response = await fetchPlain(...call);
  if (response.headers.get('content-type')?.includes('json')) response.clone().json().then(collect, () => undefined);
  return response;
};
"""
FIND_HARD_CODED = r"""
(names) => {
  const skipped = 'code, pre, kbd, time, textarea, option, noscript, script, style, [translate=no]';
  const isAmount = (text) => !/\p{L}/u.test(text) || /^[\d.,\s]+([KMGT]?B|s|ms|%)$/.test(text);
  const isData = (text) => names.includes(text) || window.apiTexts.has(text) || isAmount(text);
  const isTranslated = (text) => /^[^\p{L}]*\[.*\][^\p{L}]*$/su.test(text);
  const found = new Set();
  const check = (text, place) => {
    if (!isData(text) && !isTranslated(text)) found.add(`${place}: ${text}`);
  };
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    if (!node.parentElement.closest(skipped)) check(node.data.trim(), node.parentElement.tagName);
  }
  for (const name of ['aria-label', 'placeholder', 'title', 'alt']) {
    for (const element of document.querySelectorAll(`body [${name}]`)) {
      if (!element.closest(skipped)) check(element.getAttribute(name).trim(), name);
    }
  }
  return [...found];
}
"""
FIND_CUT = """
() => {
  const scrolls = (element) => {
    for (let at = element; at && at.tagName !== 'MAIN'; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== 'visible') return true;
    }
    return false;
  };
  const isWide = (element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element);
  return [...document.querySelectorAll('main *')].filter(isWide).map((one) => `${one.tagName} ${one.textContent}`);
}
"""
"""Finds what is wider than the window and not in something that scrolls sideways by itself."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pseudo")
    vite = (SOURCE / "node_modules" / "vite" / "bin" / "vite.js", "build", "--config", "pseudo.config.ts")
    command = ["node", *map(str, vite), "--logLevel", "warn", "--outDir", str(folder)]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return folder


async def test_texts_are_in_the_catalogues_and_longer_ones_fit(
    browser: Browser, server: RunningServer, built: Path
) -> None:
    agent = (await server.client(server.key("default")).post("/v0/agents", json={"name": "Ada"})).json()["agent"]

    async def serve_asset(route: Route) -> None:
        file = built / "assets" / Path(route.request.url).name
        await route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file)[0] or "")

    async def serve_page(route: Route) -> None:
        if route.request.resource_type != "document":
            await route.continue_()
            return
        answer = await route.fetch()
        (nonce,) = set(re.findall(r'nonce="([0-9a-f]{32})"', await answer.text()))
        await route.fulfill(response=answer, body=(built / "index.html").read_text().replace("__NONCE__", nonce))

    problems: list[str] = []
    async with visiting(browser, server, "phone", role="owner", tenant="default") as visit:
        await visit.page.add_init_script(COLLECT_DATA)
        await visit.page.route("**/*", serve_page)
        await visit.page.route("**/assets/*", serve_asset)
        for path in PAGES:
            await visit.open(path.format(id=agent["agentId"]))
            await visit.picture(path)
            problems += [f"{path} {found}" for found in await visit.page.evaluate(FIND_HARD_CODED, NAMES)]
            problems += [f"{path} is cut: {cut}" for cut in (await visit.page.evaluate(FIND_CUT))[:1]]
    assert not problems, "\n".join(problems)


def test_the_locale_is_not_shipped(built: Path) -> None:
    def has_marks(folder: Path) -> bool:
        return any("~~~~ " in file.read_text() for file in (folder / "assets").glob("*.js"))

    assert (has_marks(built), has_marks(BUILT)) == (True, False)
