"""Names of this repository's code, to which the names that documents show in backticks are compared."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

from tests.architecture.code import ROOT, literals, modules, parse

_PLACEHOLDER = re.compile(r"<\w+>")
_PATH = re.compile(
    r"(?<![\w/.:@<-])[\w<>*.-]+(?:/[\w<>*.-]+)+/?|(?<![\w/-])\w+/"
    r"|(?<![\w/>-])\w+\.(?:py|md|toml|txt|json|js|ts|tsx)\b"
)
_NAME = re.compile(r"(?<![\w.$-])(?:[A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*\(?")
_CODE_LIKE = re.compile(r"\(|[a-z]_[a-z]|[a-z][A-Z]|\w\.\w")


@dataclass(frozen=True)
class CodeNames:
    """What the code defines: `members` by class, by module and by folder; `callables`; `words`, every other name."""

    members: Mapping[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    callables: set[str] = field(default_factory=lambda: set(dir(builtins)))
    words: set[str] = field(default_factory=lambda: set(dir(builtins)))

    def knows(self, name: str) -> bool:
        """Return whether a name, a dotted one, or a called one (`name(`) is defined or is a literal of the code."""
        *owners, last = name.removesuffix("(").split(".")
        if owners and last in self.members.get(owners[-1], ()):
            return True
        if name.endswith("("):
            return not owners and last in self.callables
        return name in self.words


@cache
def code_names() -> CodeNames:
    """Read the names of the package, its scripts and its benchmarks."""
    found = CodeNames()
    others = [path for folder in ("scripts", "bench") for path in (ROOT / folder).glob("*.py")]
    for module in (*modules(), *(parse(str(path.relative_to(ROOT)), path.read_text()) for path in others)):
        path = PurePosixPath(module.path)
        found.words.update((path.stem, *path.parts[:-1]))
        found.words.update(text for _, text in literals(module))
        found.words.update(node.arg for node in module.nodes if isinstance(node, ast.arg))
        owners = {path.stem, path.parent.name} - {"__init__"}
        for name in _defined(module.tree.body):
            for owner in owners:
                found.members[owner].add(name)
        found.members[path.parent.name].add(path.stem)
        found.members[path.parent.parent.name].add(path.parent.name)
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                found.members[node.name].update(_defined(node.body), _attributes(node))
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.callables.add(node.name)
    found.words.update(found.callables, *found.members.values())
    return found


def missing_names(text: str, files: frozenset[str]) -> Iterator[str]:
    """Yield the paths, make targets, modules and names in one text in backticks that do not exist.

    Of a text with spaces only what looks like code counts. Paths are relative to the checkout or to the package, a
    file name without a folder may be anywhere, `<name>` stands for anything. What begins with a slash is a URL's path.
    """
    if targets := re.match(r"make( [\w= ]+)?$", text):
        yield from (
            f"make {one}" for one in (targets[1] or "").split() if "=" not in one and one not in _make_targets()
        )
        return
    for module in re.findall(r"python -m ([\w.]+)", text):
        path = module.replace(".", "/")
        if f"{path}.py" not in files and f"{path}/__main__.py" not in files:
            yield f"python -m {module}"
    rest = re.sub(r"python -m [\w.]+.*|\.venv/bin/roost .*|\broost [a-z].*|[\"'].*?[\"']|(?<![\w>])/\S+", "", text)
    for path in _PATH.findall(rest):
        if not _is_path(path, files):
            yield path
    rest = _PATH.sub("", rest)
    for name in _NAME.findall(rest):
        is_code = " " not in text or _CODE_LIKE.search(name)
        if is_code and not code_names().knows(name):
            yield name.removesuffix("(")


def _is_path(path: str, files: frozenset[str]) -> bool:
    pattern = _PLACEHOLDER.sub("*", path.rstrip("/"))
    if "/" not in pattern:
        return any(pattern in (PurePosixPath(file).name, *PurePosixPath(file).parts[:-1]) for file in files)
    found = (path for base in (ROOT, ROOT / "roost") for path in base.glob(pattern))
    return any(str(one.relative_to(ROOT)) in _with_folders(files) for one in found)  # not what Git ignores


@cache
def _with_folders(files: frozenset[str]) -> frozenset[str]:
    return files | {str(folder) for file in files for folder in PurePosixPath(file).parents}


@cache
def _make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            yield one.attr
