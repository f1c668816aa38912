"""A person searches documents by meaning: the command line, real documents, and the model that comes with Roost."""

import json
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.text_extractor.documents import make_pdf, make_word
from tests.journeys.server_process import ServerProcess, until, up

pytestmark = [pytest.mark.container, pytest.mark.timeout(180)]

BOILER = "The heating system in the basement is inspected by a technician every spring."
BREAD = "Mix flour, water and salt, and let the dough rise for two hours."
SCHOOL = "Pupils learn to read and write in their first year of school."


def add(server: ServerProcess, folder: Path, name: str, content: bytes, group: str) -> None:
    (folder / name).write_bytes(content)
    made = server.roost("files", "upload", str(folder / name), "--group", group)
    assert made.returncode == 0, made.stderr


def rows(server: ServerProcess, *arguments: str) -> Any:
    done = server.roost("vectors", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def find_best_match(server: ServerProcess, question: str) -> str:
    return rows(server, "query", "manuals", question)["matches"][0]["name"]


def test_documents_are_found_by_what_they_mean_and_after_a_crash(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        group = json.loads(server.roost("groups", "create", "manuals", "-o", "json").stdout)["id"]
        add(server, tmp_path, "boiler.pdf", make_pdf(BOILER), group)
        add(server, tmp_path, "bread.docx", make_word(BREAD), group)
        add(server, tmp_path, "school.txt", SCHOOL.encode(), group)
        states = {row["name"]: row["state"] for row in rows(server, "add", "--group", "manuals")}
        assert states == dict.fromkeys(("boiler.pdf", "bread.docx", "school.txt"), "indexed")
        assert find_best_match(server, "When does someone check the furnace?") == "boiler.pdf"
        assert find_best_match(server, "How do I bake a loaf?") == "bread.docx"
        assert find_best_match(server, "education of children") == "school.txt"

        words = "\n\n".join(f"Chapter {number}. {SCHOOL} {BREAD}" for number in range(1000))
        add(server, tmp_path, "long.txt", words.encode(), group)
        path = f"/v3/vectorize/files/{rows(server, 'show', 'long.txt')['file_id']}"
        with server.client() as client:
            with pytest.raises(httpx.ReadTimeout):  # the server goes on without the client
                client.post(path, timeout=0.5)
            until(lambda: client.get(path).json()["data"]["chunks_done"])
        server.kill()
        server.start()
        until(lambda: rows(server, "show", "long.txt")["state"] == "indexed")
        assert find_best_match(server, "When does someone check the furnace?") == "boiler.pdf"
        assert server.roost("vectors", "remove", "boiler.pdf").stdout == "Removed.\n"
        assert find_best_match(server, "When does someone check the furnace?") != "boiler.pdf"
