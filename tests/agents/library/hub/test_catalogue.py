"""The skills that Roost ships: valid, clean, and every command that they document works in a real container."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from roost.agents.library.skills.bundle import Bundle, read_files
from roost.agents.library.skills.skill_file import parse_skill_file
from roost.agents.library.skills.verdict import VerdictLevel, check_bundle
from tests.architecture.code import CATALOGUE
from tests.conformance.runtimes import bwrap, open_runtime_env

SKILLS = sorted(folder.name for folder in CATALOGUE.iterdir())
PORT = 8765  # in the examples

SEARCH_API = """
import http.server, json
FILE = {"file_id": "f", "name": "boiler.pdf", "cid": "bafk", "state": "none", "reason": None}
MATCH = {"score": 0.61234, "name": "boiler.pdf", "cid": "bafk", "text": "In May."}
ANSWERS = {
    "GET /v3/vectorize/groups": {"groups": [{"id": "g", "name": "manuals"}]},
    "GET /v3/vectorize/groups/g/files": {"files": [FILE], "next_page_token": ""},
    "POST /v3/vectorize/files/f": {**FILE, "state": "indexed"},
    "POST /v3/vectorize/groups/g/query": {"matches": [MATCH], "outdated_files": 0},
}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": ANSWERS[f"{self.command} {self.path.partition('?')[0]}"]}).encode())
    do_POST = do_GET
http.server.HTTPServer(("127.0.0.1", 8799), Handler).serve_forever()
"""
"""Stands for the server of an agent; `tests/contract/test_vectors.py` has the real one."""

WORKSPACE: Mapping[str, str] = {
    "sales.csv": "region;amount;day\nnorth;10;1\nsouth;2.5;1\nnorth;20;2\nsouth;;2\n",
    "order.json": '{"id": 7, "items": [{"name": "tea", "price": 3}, {"name": "cup", "price": 5.5}], "notes": []}',
    "draft-1.txt": "The offer ends on Friday.\nIt costs 10 coins.\n",
    "draft-2.txt": "The offer ends on Monday.\nIt costs 10 coins.\n",
    "notes.txt": "Something else entirely\n",
    "project/notes.txt": "plan\n",
    "copies/plan.txt": "plan\n",
    "copies/deep/large.bin": "x" * 5000,
    "index.html": "<title>Home</title><h1>Welcome</h1>",
    "search_api.py": SEARCH_API,
    "page.html": "<html><head><title>A page</title><style>p{}</style></head><body><nav>menu</nav><h1>Head</h1>"
    "<p>Some <b>bold</b> text.</p><ul><li>one<li><a href='/two'>two</a></ul><script>no()</script></body></html>",
}
SETUP = f"""
mkdir -p void
git init -q -b main project && git -C project config user.name Ada && git -C project config user.email ada@example.org
git -C project commit -q --allow-empty -m Start
python3 -m http.server {PORT} --bind 127.0.0.1 >/dev/null 2>&1 &
server=$!
python3 search_api.py >/dev/null 2>&1 &
server="$server $!"
for port in {PORT} 8799; do
  until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null; do :; done
done
"""
EXPECTED: Mapping[str, tuple[str, ...]] = {
    # parts of the outputs, in this order
    "backup-files": ("created backups/project-", "verify", "  ok", "restored backups/project-"),
    "csv-insight": (
        "4 rows, 3 columns",
        "amount: 1 empty, 3 distinct",
        "from 2.5 to 20, sum 32.5",
        "30\tnorth",
        "15\tnorth",
    ),
    "daily-journal": (
        "added to journal/",
        "**open** Send the offer",
        "**decision** Use the",
        "**open** Send the offer",
    ),
    "find-duplicates": (
        "1 groups of equal files, 10 bytes",
        "copies/plan.txt",
        "5000  copies/deep/large.bin",
        "./void",
    ),
    "git-helper": ("branch: main", "?? notes.txt", "notes.txt", "1 file changed", "Explain the new schedule", "plan"),
    "http-check": ("ok http://127.0.0.1", "status 200", "--contains", "ok http", "/missing", "ok http", "status 404"),
    "json-tools": ("items.*.name: str x 2", "tea\ncup\n", "\n3\n", "equal", 'items.1.name = "cup"', "notes = []"),
    "page-text": (
        "Title: A page",
        "# Head\n\nSome bold text.\n\n- one\n- two",
        "- two: http://127.0.0.1:8765/two",
        "Head",
    ),
    "search-files": (
        *("g  manuals", "none      boiler.pdf", "indexed   boiler.pdf"),
        "0.612  boiler.pdf  bafk\n    In May.",
    ),
    "sqlite-notes": (
        "added note 2",
        "boiler is serviced",
        "[home yearly]",
        "tea  [people]",
        "changed note 2",
        "deleted note 1",
    ),
    "text-diff": ("-The offer ends on Friday.", "[-Friday-] {+Monday+}", "90.9%  draft-2.txt"),
}


def read_skill(name: str) -> Bundle:
    files = (file for file in (CATALOGUE / name).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return read_files((file.relative_to(CATALOGUE / name).as_posix(), file.read_bytes()) for file in files)


def documented_commands(name: str) -> list[str]:
    text = (CATALOGUE / name / "SKILL.md").read_text()
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def test_there_are_eleven() -> None:
    assert len(SKILLS) == 11
    assert sorted(EXPECTED) == SKILLS


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_is_valid_and_clean(name: str) -> None:
    bundle = read_skill(name)
    skill = parse_skill_file(bundle.files["SKILL.md"].content)
    assert (skill.name, skill.license, skill.warnings) == (name, "Apache-2.0", ())
    assert skill.wants.programs
    assert skill.metadata["version"] == "1.0.0"
    assert check_bundle(bundle).level is VerdictLevel.CLEAN


@pytest.mark.parametrize("name", SKILLS)
def test_each_script_is_documented(name: str) -> None:
    commands = "\n".join(documented_commands(name))
    assert all(f"skills/{name}/{path} " in commands for path in read_skill(name).files if path.startswith("scripts/"))


@pytest.mark.container
async def test_documented_commands_work(tmp_path: Path) -> None:
    async with open_runtime_env(bwrap, tmp_path) as env:
        container = await env.container()
        for path, text in WORKSPACE.items():
            await container.write(path, text.encode())
        for name in SKILLS:
            for path, file in read_skill(name).files.items():
                await container.write(
                    f"skills/{name}/{path}", file.content, mode=0o755 if file.is_executable else 0o644
                )
        steps = "\n".join(
            f"echo {shlex.quote(f'@{name}@ {command}')}; {command} 2>&1 || echo FAILED $?"
            for name in SKILLS
            for command in documented_commands(name)
        )
        done = await container.exec(["sh", "-c", f"{SETUP}\n{steps}\nkill $server"], timeout=60)
        assert done.exit_code == 0, done.stderr.decode()
        printed = done.stdout.decode()
        assert "FAILED" not in printed, printed
        outputs = dict.fromkeys(SKILLS, "")
        for name, output in re.findall(r"^@([a-z-]+)@ (.*?)(?=^@[a-z-]+@ |\Z)", printed, re.DOTALL | re.MULTILINE):
            outputs[name] += output
        for name, parts in EXPECTED.items():
            assert re.search(".*".join(map(re.escape, parts)), outputs[name], re.DOTALL), outputs[name]
