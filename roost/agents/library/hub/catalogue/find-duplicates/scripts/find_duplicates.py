"""Find files of equal content, large files, and empty folders."""

import argparse
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {".git", "node_modules"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("same", "large", "empty"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=20)
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"error: {options.folder} is not a folder", file=sys.stderr)
        return 1
    if options.command == "same":
        print_duplicates(options.folder, options.limit)
    elif options.command == "large":
        for size, path in sorted(find_files(options.folder), reverse=True)[: options.limit]:
            print(f"{size:>12}  {path}")
    else:
        for root, folders, files in os.walk(options.folder):
            folders[:] = sorted(set(folders) - SKIPPED)
            if not folders and not files:
                print(root)
    return 0


def find_files(folder: Path) -> Iterator[tuple[int, Path]]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED)
        for path in (Path(root) / name for name in files):
            if path.is_file() and not path.is_symlink():
                yield path.stat().st_size, path


def print_duplicates(folder: Path, limit: int) -> None:
    by_size: defaultdict[int, list[Path]] = defaultdict(list)
    for size, path in find_files(folder):
        if size:
            by_size[size].append(path)
    by_content: defaultdict[tuple[int, str], list[Path]] = defaultdict(list)
    for size, paths in by_size.items():
        for path in paths if len(paths) > 1 else ():
            with path.open("rb") as file:
                by_content[size, hashlib.file_digest(file, "sha256").hexdigest()].append(path)
    groups = sorted(
        ((size * (len(paths) - 1), paths) for (size, _), paths in by_content.items() if len(paths) > 1), reverse=True
    )
    print(f"{len(groups)} groups of equal files, {sum(waste for waste, _ in groups)} bytes could be freed")
    for waste, paths in groups[:limit]:
        print(f"\n{waste} bytes:")
        for path in sorted(paths):
            print(f"  {path}")


if __name__ == "__main__":
    sys.exit(main())
