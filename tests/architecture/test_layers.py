"""Who may import whom. `layers.py` holds the tables; every failure names the import and the way round it."""

from collections.abc import Iterable, Mapping

from tests.architecture.code import STDLIB, Import, imports, modules, names
from tests.architecture.layers import (
    GROUPS,
    HTTP_MODULES,
    LAYERS,
    PRIVATE,
    RANKS,
    SHARED_BY_DRIVERS,
    driver_kind,
    group_of,
    layer_of,
    slice_of,
)


def own_imports() -> list[Import]:
    return [found for found in imports() if found.target.partition(".")[0] == "roost"]


def fail_with(lines: Iterable[str]) -> None:
    found = sorted(set(lines))
    assert not found, "\n" + "\n".join(found)


def test_every_module_has_a_layer_and_every_slice_a_rank() -> None:
    fail_with(f"{name}: no layer; add it to layers.LAYERS" for name in names() if layer_of(name) not in LAYERS)
    fail_with(
        f"{name}: of no slice with a rank, or of no group; give it a line in layers.RANKS and layers.GROUPS"
        for name in names()
        if (group := group_of(name)) and (group not in GROUPS or (slice_of(name) is None and name.count(".") > 2))
    )


def test_the_tables_name_only_what_is_there() -> None:
    slices = {slice_of(name) for name in names()}
    fail_with(f"layers.RANKS names {found}, which is gone" for found in set(RANKS) - slices)
    fail_with(f"layers.SHARED_BY_DRIVERS names {found}, which is gone" for found in set(SHARED_BY_DRIVERS) - names())


def test_layers_import_lower_layers() -> None:
    def wrong(found: Import) -> bool:
        here, there = layer_of(found.module.name), layer_of(found.target)
        return here != there and there not in LAYERS[here]

    fail_with(
        f"{found.place}: {layer_of(found.module.name)} imports {found.target}; it may import {_allowed(found)} only."
        + (" Know the contract; app/ picks the implementation." if layer_of(found.target) == "drivers" else "")
        for found in own_imports()
        if wrong(found)
    )


def test_slices_import_lower_ranks() -> None:
    fail_with(
        f"{found.place}: {here} (rank {RANKS.get(here)}) imports {there} (rank {RANKS.get(there)}); a slice imports "
        "lower ranks only. A workflow that crosses slices belongs in agents/lifecycle, which calls down."
        for found in own_imports()
        if (here := slice_of(found.module.name))
        and (there := slice_of(found.target))
        and here != there
        and not _is_above(found.module.name, found.target)
    )


def test_storage_does_not_know_agents() -> None:
    fail_with(
        f"{found.place}: storage never imports agents; agents may build on storage.content"
        for found in own_imports()
        if found.module.name.startswith("roost.storage.") and found.target.startswith("roost.agents")
    )


def test_a_driver_imports_its_own_kind() -> None:
    fail_with(
        f"{found.place}: a driver of kind {driver_kind(found.module.name)} imports {found.target}; between kinds only "
        "contracts are known"
        for found in own_imports()
        if layer_of(found.module.name) in ("drivers", "contracts")
        and layer_of(found.target) == "drivers"
        and driver_kind(found.module.name) != driver_kind(found.target)
    )


def test_private_modules_are_imported_by_their_own_package_only() -> None:
    fail_with(
        f"{found.place}: imports {found.target}; {part}.py is private to its package. Call its service, "
        "or let the service offer what is missing"
        for found in own_imports()
        if (part := _private_part(found.target))
        and not found.module.name.startswith(found.target.rsplit(".", 1)[0])
        and not (part == "api" and layer_of(found.module.name) == "http")
    )


def test_few_modules_of_a_package_know_http() -> None:
    fail_with(
        f"{found.place}: imports {found.target}; in a slice only {', '.join(HTTP_MODULES)} know HTTP"
        for found in own_imports()
        if layer_of(found.module.name) in ("slices", "identity")
        and layer_of(found.target) == "web"
        and found.module.name.rpartition(".")[2] not in HTTP_MODULES
    )


def test_the_warden_imports_the_standard_library_alone() -> None:
    fail_with(
        f"{found.place}: imports {found.target}; the warden is mounted alone into containers"
        for found in imports()
        if layer_of(found.module.name) == "warden"
        and found.target.partition(".")[0] not in STDLIB
        and not found.target.startswith("roost.warden")
    )


def test_no_import_cycle() -> None:
    edges: dict[str, set[str]] = {module.name: set() for module in modules()}
    for found in own_imports():
        if found.target in edges and found.target != found.module.name and not found.for_types:
            edges[found.module.name].add(found.target)
    fail_with(f"import cycle: {' <-> '.join(sorted(group))}" for group in _cycles(edges))


def test_the_search_for_cycles_finds_one() -> None:
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def test_no_two_packages_import_each_other() -> None:
    """A package and one inside it may: their modules make no cycle."""
    edges: dict[str, set[str]] = {}
    for found in own_imports():
        edges.setdefault(_package_of(found.module.name), set()).add(_package_of(found.target))
    fail_with(
        f"{here} and {there} import each other"
        for here, targets in edges.items()
        for there in targets
        if here < there and here in edges.get(there, ()) and not there.startswith(f"{here}.")
    )


def test_folders_are_small() -> None:
    """A folder has at most 24 modules and 16 folders; only migrations grow, one file each."""
    children: dict[str, set[str]] = {}
    for module in modules():
        folders = module.path.split("/")
        for depth in range(1, len(folders)):
            children.setdefault("/".join(folders[:depth]), set()).add(folders[depth])
    fail_with(
        f"{folder} has {len(found) - folders} modules and {folders} folders; group them"
        for folder, names_in in children.items()
        if folder != "roost/migrations/versions"
        if (found := names_in - {"__init__.py"})
        if (folders := sum(not name.endswith(".py") for name in found)) > 16 or len(found) - folders > 24
    )


def _package_of(module: str) -> str:
    is_package = any(found.name == module and found.path.endswith("/__init__.py") for found in modules())
    return module if is_package else module.rpartition(".")[0]


def _is_above(module: str, target: str) -> bool:
    """Return whether a module may import one of another slice: of a lower group, or of a lower rank in its own."""
    here, there = group_of(module) or "", group_of(target) or ""
    if here != there:
        return GROUPS.get(here, 0) > GROUPS.get(there, 0)
    return RANKS.get(slice_of(module) or "", 0) > RANKS.get(slice_of(target) or "", 0)


def _allowed(found: Import) -> str:
    return ", ".join(LAYERS[layer_of(found.module.name)]) or "nothing else of Roost"


def _private_part(target: str) -> str | None:
    parts = target.split(".")
    if layer_of(target) in ("slices", "identity", "work") and parts[-1] in PRIVATE:
        return parts[-1]
    return None


def _cycles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach each other: what is left after leaves and roots are taken away, joined by reach."""
    alive = {name: set(targets) for name, targets in edges.items()}
    while leaves := {name for name, targets in alive.items() if not targets & alive.keys() - {name}}:
        alive = {name: targets for name, targets in alive.items() if name not in leaves}
    groups: list[set[str]] = []
    for name in alive:
        group = {other for other in _reach(name, alive) if name in _reach(other, alive)}
        if group and group not in groups:
            groups.append(group)
    return groups


def _reach(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in edges.get(waiting.pop(), set()) - seen:
            seen.add(target)
            waiting.append(target)
    return seen
