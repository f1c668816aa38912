"""Build the site of the docs: `.venv/bin/python scripts/docs.py` (decision 0039).

Copies `docs/`, adds the pages about the command line and the reference of the API, lets Zensical build it, and moves
scripts out of the pages, so that the server's content security policy need not allow any inside them. The reader of the
API is one file of an npm package; without npm the site has none. Idempotent: a stamp remembers from what the site was
built.
"""

import base64
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from file_hash import ROOT, hash_files

from dashboard import find_node, replace_folder

SOURCE, DOCS = ROOT / "site", ROOT / "docs"
WORK = ROOT / "build" / "docs"
BUILT = ROOT / "roost" / "http" / "dashboard" / "docs"
STAMP, READER = WORK / ".built", WORK / "reader"
API_PAGE = "reference/agents-api.md"
PROJECT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "dashboard/README.md")
SECTIONS = ("explanation", "guides", "reference", "builders", "decisions", "cli", "project")
PACKAGE, VERSION = "@scalar/api-reference", "1.72.1"
INTEGRITY = "sha512-XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow=="
PARTS = {
    "package/dist/browser/standalone.js": "scalar.js",
    "package/dist/browser/standalone.js.map": "scalar.map",
    "package/package.json": "package.json",
}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)")
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
DRAWING = re.compile(r'<img\b[^>]*\bsrc="[^"]*images/([\w-]+)\.svg"[^>]*>')


def main() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second run waits, then finds the work done
        wanted = hash_files(input_files())
        if STAMP.exists() and STAMP.read_text() == wanted and (BUILT / "index.html").exists():
            return
        print("Building the docs ...", flush=True)
        STAMP.unlink(missing_ok=True)
        has_reader = fetch_reader()
        copy_pages()
        build_site()
        site = WORK / "site"
        finish_site(site)
        copy_reader(site, has_reader=has_reader)
        (site / "third-party-notices.txt").write_text("\n".join(list_notices(has_reader=has_reader)))
        replace_folder(site, BUILT)
        if has_reader:  # otherwise the next run tries again
            STAMP.write_text(wanted)


def copy_pages() -> None:
    """Copy the pages, with links that fit where they are in the site."""
    pages = WORK / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages)
    shutil.copytree(SOURCE / "assets", pages / "assets")
    names = {f"docs/{file.relative_to(DOCS).as_posix()}": file.relative_to(DOCS).as_posix() for file in pages_of(DOCS)}
    names |= {name: f"project/{name.removesuffix('.md').replace('/', '-').lower()}.md" for name in PROJECT_PAGES}
    for source, target in names.items():
        (pages / target).parent.mkdir(exist_ok=True)
        (pages / target).write_text(LINK.sub(partial(moved, source, names), (ROOT / source).read_text()))
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
    (pages / "cli").mkdir()
    for name, text in command_pages().items():
        (pages / "cli" / name).write_text(text)
    (pages / API_PAGE).write_text(api_page())


def moved(source: str, names: Mapping[str, str], found: re.Match[str]) -> str:
    """Return a link of a page as it is in the site; one to a file outside the site leads to the readme."""
    target = normpath(PurePosixPath(source).parent / found[1])
    place = names.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else names["README.md"])
    return relpath(place, PurePosixPath(names[source]).parent)


def command_pages() -> Mapping[str, str]:
    """Render the command line of this checkout."""
    from cli_reference import render_pages

    from roost.cli.main import create_program

    program = create_program()
    program.load_commands()
    return render_pages(program)


def api_page() -> str:
    """Render the reference of the API of this checkout."""
    from api_reference import render_reference

    from roost.http.server.application import create_bare_application

    return render_reference(create_bare_application())


def build_site() -> None:
    text = (SOURCE / "zensical.toml").read_text()
    for folder in SECTIONS:
        listed = set(re.findall(r'"([\w/.-]+\.md)"', text))
        files = sorted(f"{folder}/{file.name}" for file in (WORK / "pages" / folder).glob("*.md"))
        rest = ", ".join(f'"{file}"' for file in files if file not in listed)
        text = text.replace(f'"{folder}/*.md"', rest).replace("[, ", "[").replace(", ,", ",")
    text = re.sub(r"\n *,\n", "\n", text)
    tomllib.loads(text)
    (WORK / "zensical.toml").write_text(text)
    shutil.rmtree(WORK / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(WORK / "zensical.toml")]
    done = subprocess.run(command, cwd=WORK, check=False, capture_output=True, text=True)
    if done.returncode or not (WORK / "site" / "index.html").exists():
        sys.exit(f"{done.stdout}{done.stderr}\nThe docs could not be built; the lines above say why.")


def finish_site(site: Path) -> None:
    """Move scripts of pages into files, and put drawings into pages."""
    for page in site.rglob("*.html"):
        up = relpath(site, page.parent)
        text = DRAWING.sub(lambda found: drawing(found[1]), page.read_text())
        text = SCRIPT.sub(lambda found: moved_script(site, up, found[1]), text)  # noqa: B023 - called at once
        page.write_text(text)


def moved_script(site: Path, up: str, code: str) -> str:
    name = f"assets/inline.{hashlib.sha256(code.encode()).hexdigest()[:12]}.js"
    (site / name).write_text(code)
    return f'<script src="{up}/{name}"></script>'


def drawing(name: str) -> str:
    """Return a drawing as part of the page, whose colours follow the page's; its own style is for other readers."""
    text = (DOCS / "images" / f"{name}.svg").read_text()
    return re.sub(r"<style>.*?</style>\s*", "", text, flags=re.DOTALL).replace("<svg ", '<svg class="drawing" ', 1)


def fetch_reader() -> bool:
    """Return whether the reader of the API is there, after trying to get it from npm."""
    if all((READER / name).exists() for name in PARTS.values()) and (READER / "version").read_text() == INTEGRITY:
        return True
    if (folder := find_node()) is None:
        print("The docs are built without the reader of the API, which needs npm. With Node installed: make docs")
        return False
    shutil.rmtree(READER, ignore_errors=True)
    READER.mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [folder / "npm", "pack", f"{PACKAGE}@{VERSION}", "--json", "--ignore-scripts", "--prefer-offline"]
    done = subprocess.run(command, cwd=READER, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{done.stderr}The docs are built without the reader of the API, which could not be downloaded.")
        return False
    package = READER / json.loads(done.stdout)[0]["filename"]
    if f"sha512-{base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()}" != INTEGRITY:
        sys.exit(f"{PACKAGE} {VERSION} from npm is not the package that this checkout was tested with.")
    with tarfile.open(package) as archive:
        for member, name in PARTS.items():
            (READER / name).write_bytes((archive.extractfile(member) or sys.exit(f"{member} is missing")).read())
    package.unlink()
    (READER / "version").write_text(INTEGRITY)
    return True


def copy_reader(site: Path, *, has_reader: bool) -> None:
    folder = site / "api"
    folder.mkdir()
    if not has_reader:
        (folder / "index.html").write_text((SOURCE / "reader" / "missing.html").read_text())
        return
    page = (SOURCE / "reader" / "index.html").read_text()
    for file in [*(SOURCE / "reader").glob("*.js"), *(SOURCE / "reader").glob("*.css"), READER / "scalar.js"]:
        content = file.read_bytes()
        name = f"{file.stem}.{hashlib.sha256(content).hexdigest()[:12]}{file.suffix}"
        (site / "assets" / name).write_bytes(content)
        page = page.replace(f"../assets/{file.name}", f"../assets/{name}")
    (folder / "index.html").write_text(page)


def list_notices(*, has_reader: bool) -> Iterable[str]:
    """Yield the licence of the theme, and what the reader's package tells, which has no file about its licence."""
    theme = metadata.distribution("zensical")
    yield f"The pages contain code of zensical {theme.version}:\n\n{theme.read_text('licenses/LICENSE.md')}"
    if has_reader:
        licence = json.loads((READER / "package.json").read_text())["license"]
        yield f"The reader of the API is {PACKAGE} {VERSION} ({licence}), with code of these packages:\n"
        paths = "\n".join(json.loads((READER / "scalar.map").read_text())["sources"])
        yield from sorted(set(re.findall(r".*node_modules/((?:@[^/]+/)?[^/@][^/]*)/", paths)))


def pages_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def input_files() -> Iterable[Path]:
    """List all that the site is made from, the code of the command line and of the API included."""
    found = [file for folder in (DOCS, SOURCE) for file in folder.rglob("*") if file.is_file()]
    found += (ROOT / "roost").rglob("*.py")
    named = [ROOT / name for name in (*PROJECT_PAGES, "scripts/docs.py", "scripts/cli_reference.py", "pyproject.toml")]
    return [*sorted(found), *named]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next run begins again where that is safe.")
