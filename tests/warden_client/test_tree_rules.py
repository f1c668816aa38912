"""What the rules accept, a warden writes, and a scan and the names of a snapshot give it back; the rest is refused."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roost.storage.content.unixfs.entry_name import decode_entry_name, encode_entry_name
from roost.warden_client import tree_rules
from roost.warden_client.changes import PutFile, PutFolder, PutLink, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.tree import ScanEntry
from roost.warden_client.tree_rules import TreeRefused, TreeRules
from tests.conformance.runtimes import CASES, Make, open_runtime_env
from tests.conformance.trees import apply, read, scan

EXAMPLES = 60


@dataclass(frozen=True)
class Item:
    """An entry of a generated tree; `content` is that of a file or the target of a link."""

    path: str
    kind: str
    mode: int
    content: bytes


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


ODD_NAMES = [
    *("", ".", "..", ".git", "GIT~1", "a", "A", "manifest.json", ".roost-staging", ".roost-staging-2", "a\nb", "a\tb"),
    *(
        "back\\slash",
        "\uef80",
        "icon \uefff\uf015",
        "caf\udce9",
        "e\u0301",
        "-rf *",
        "x" * 255,
        "x" * 256,
        "\uef80" * 85,
    ),
    *("\uef80" * 86, "nul\0nul", "\udcc3\udca9", "\ud800", "con", "a ", "~", "a:b", '"', "\x7f\x1b[31m"),
]
names = st.sampled_from(ODD_NAMES) | st.binary(min_size=1, max_size=12).map(text) | st.sampled_from("abc")
plain_names = st.sampled_from("abcd") | st.sampled_from(["\uef80", "caf\udce9", "back\\slash"])
paths = st.lists(plain_names, min_size=1, max_size=4).map("/".join)
odd_paths = st.lists(names, min_size=1, max_size=4).map("/".join)
deep_paths = st.builds(
    lambda name, depth: "/".join([name] * depth), st.sampled_from(["d", "x" * 100]), st.integers(30, 300)
)
targets = st.binary(max_size=30) | st.integers(1, 4200).map(lambda size: b"t" * size)
modes = st.sampled_from([0o644, 0o755, 0o400, 0o500, 0o777, 0o000, 0o200]) | st.integers(0, 0o777)
items = st.builds(Item, paths | odd_paths | deep_paths, st.sampled_from(["file", "folder", "link"]), modes, targets)
easy_items = st.builds(
    Item,
    paths,
    st.sampled_from(["file", "folder", "link"]),
    st.sampled_from([0o644, 0o700]),
    st.binary(min_size=1, max_size=9),
)
trees = st.lists(items, max_size=6) | st.lists(easy_items, max_size=8)


def accepts(tree: list[Item]) -> str | None:
    """Return why the rules refuse a tree, None if they accept it."""
    rules = TreeRules()
    try:
        for item in tree:
            rules.check_entry(item.path, item.kind, mode=item.mode, target_size=len(item.content))
            if item.kind == "link":
                rules.check_target(item.path, item.content)
    except TreeRefused as refused:
        return refused.message.removeprefix(f"{item.path[:200]!a} ")
    return None


def change_for(item: Item) -> TreeChange:
    match item.kind:
        case "file":
            return PutFile(item.path, item.mode, len(item.content), item.content)
        case "link":
            return PutLink(item.path, text(item.content))
        case _:
            return PutFolder(item.path, item.mode)


def expected(tree: list[Item]) -> dict[str, tuple[str, int, str]]:
    """Return kind, permissions and target by path, with the folders that no item names."""
    found = {
        "/".join(parts[:depth]): ("folder", 0o755, "")
        for parts in (item.path.split("/") for item in tree)
        for depth in range(1, len(parts))
    }
    for item in tree:
        is_link = item.kind == "link"
        found[item.path] = (item.kind, 0o777 if is_link else item.mode, text(item.content) if is_link else "")
    return found


def describe(found: dict[str, ScanEntry]) -> dict[str, tuple[str, int, str]]:
    assert not [entry for entry in found.values() if entry.error]
    return {path: (entry.kind, entry.mode, entry.target) for path, entry in found.items()}


async def check_tree(container: WardenClient, tree: list[Item]) -> str | None:
    if (reason := accepts(tree)) is not None:
        return reason
    await apply(container, *map(change_for, tree))
    assert describe(await scan(container)) == expected(tree)
    files = {item.path: item.content for item in tree if item.kind == "file"}
    contents = await read(container, *files) if files else []
    assert {file.path: content for file, content in contents} == files
    assert not [file.error for file, _ in contents if file.error]
    for path in expected(tree):
        for name in path.split("/"):
            assert decode_entry_name(encode_entry_name(name)) == name
    await apply(container, *map(RemovePath, {item.path.partition("/")[0] for item in tree}))
    assert await scan(container) == {}
    return None


@pytest.mark.parametrize("make", CASES)
def test_accepted_trees_are_written_and_found_again(make: Make, tmp_path: Path) -> None:
    outcomes = list[str | None]()
    with asyncio.Runner() as runner:
        environment = open_runtime_env(make, tmp_path)
        env = runner.run(environment.__aenter__())
        container = runner.run(env.container())

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list[HealthCheck](HealthCheck),  # pyright: ignore[reportArgumentType] - its metaclass is untyped
        )
        @given(trees)
        def check(tree: list[Item]) -> None:
            outcomes.append(runner.run(check_tree(container, sorted(tree, key=lambda item: item.path.split("/")))))

        try:
            check()
        finally:
            runner.run(environment.__aexit__(None, None, None))
    assert sum(outcome is None for outcome in outcomes) > EXAMPLES // 6
    assert len(set(outcomes)) > 5, "few kinds of trees are generated"


EDGES = [
    ([Item("x" * 255, "file", 0o644, b"")], None),
    ([Item("x" * 256, "file", 0o644, b"")], "is too long"),
    ([Item("/".join("d" * 256), "file", 0o644, b"")], None),
    ([Item("/".join("d" * 257), "file", 0o644, b"")], "is too long"),
    ([Item("/".join(["x" * 255] * 15 + ["y" * 244]), "file", 0o644, b"")], None),
    ([Item("/".join(["x" * 255] * 15 + ["y" * 245]), "file", 0o644, b"")], "is too long"),
    ([Item("l", "link", 0, b"t" * 4095)], None),
    ([Item("l", "link", 0, b"t" * 4096)], "is a symbolic link of 4,096 bytes"),
    ([Item("l", "link", 0, b"")], "is a symbolic link of 0 bytes"),
    ([Item("l", "link", 0, b"a\0b")], "is a symbolic link whose target has a NUL byte"),
    ([Item("l", "link", 0, b"\xff/../\xe9")], None),
    ([Item("closed", "folder", 0o400, b"")], None),
    ([Item("closed", "folder", 0o400, b""), Item("closed/a", "file", 0o644, b"")], "is in a folder that its owner"),
    ([Item("closed", "folder", 0o400, b""), Item("closed/a/b", "file", 0o644, b"")], "is in a folder that its owner"),
    ([Item("a/b/c", "file", 0o644, b""), Item("a", "folder", 0o644, b"")], "has entries that its owner cannot open"),
    ([Item("closed", "folder", 0o100, b"")], "cannot be read by its owner"),
    ([Item("a", "file", 0o044, b"")], "cannot be read by its owner"),
    ([Item("a", "file", 0o644, b""), Item("a/b", "file", 0o644, b"")], "is below a file or link"),
    ([Item("a/b", "file", 0o644, b""), Item("a", "link", 0, b"b")], "is there twice, or as a file and a folder"),
    ([Item("a", "file", 0o644, b"")] * 2, "is there twice, or as a file and a folder"),
]


@pytest.mark.parametrize("make", CASES)
async def test_the_edges_of_the_rules_are_those_of_the_warden(make: Make, tmp_path: Path) -> None:
    async with open_runtime_env(make, tmp_path) as env:
        container = await env.container()
        for tree, reason in EDGES:
            found = await check_tree(container, tree)
            assert (found or "").startswith(reason or "")
            assert (found is None) == (reason is None), (tree[0].path[:20], found)


def test_a_regular_file_is_no_folder_and_no_link() -> None:
    for path, kind in (("m.json", "folder"), ("m.json", "link"), ("m.json/a/b", "file")):
        with pytest.raises(TreeRefused, match="regular file"):
            TreeRules(files=("m.json",)).check_entry(path, kind)
    rules = TreeRules(files=("m.json",))
    for path in ("m.json", "m.json2/a", "a/m.json/b"):
        rules.check_entry(path, "file")


def test_own_trees_may_have_long_paths() -> None:
    TreeRules(max_path_bytes=None).check_entry("/".join(["x" * 255] * 256), "file")


def test_a_tree_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_rules, "MAX_FOLDER_ENTRIES", 3)
    rules = TreeRules()
    for number in random.Random(1).sample(range(9), 9):
        rules.check_entry(f"{number % 3}/{number}", "file")
    with pytest.raises(TreeRefused, match="'0/x' is one too many"):
        rules.check_entry("0/x", "file")
    with pytest.raises(TreeRefused, match="'3/0' is one too many"):
        rules.check_entry("3/0", "file")
