"""Archives of folders with checksums."""

import argparse
import hashlib
import sys
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("backups"))
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create")
    create.add_argument("folder", type=Path)
    create.add_argument("--keep", type=int, default=0)
    commands.add_parser("list")
    commands.add_parser("verify")
    restore = commands.add_parser("restore")
    restore.add_argument("name")
    restore.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    try:
        return run_command(options)
    except (OSError, ValueError, tarfile.TarError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def run_command(options: argparse.Namespace) -> int:
    if options.command == "create":
        create_archive(options.store, options.folder, options.keep)
        return 0
    archives = find_archives(options.store)
    if options.command == "restore":
        matching = find_archives(options.store, options.name)
        if not matching:
            raise ValueError(f"no archive of {options.name!r}")
        restore_archive(matching[-1], options.to)
        return 0
    if not archives:
        print("no archives")
    damaged = 0
    for archive in archives:
        state = ""
        if options.command == "verify":
            is_whole = hash_file(archive) == checksum_file(archive).read_text().split()[0]
            damaged += not is_whole
            state = "  ok" if is_whole else "  DAMAGED"
        print(f"{archive}  {archive.stat().st_size} bytes{state}")
    return 1 if damaged else 0


def find_archives(store: Path, name: str = "*") -> Sequence[Path]:
    return sorted(store.glob(f"{name}-????????T?????????????.tar.gz"))


def checksum_file(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.sha256")


def create_archive(store: Path, folder: Path, keep: int) -> None:
    if not folder.is_dir() or store.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{folder} is not a folder, or contains the archives")
    store.mkdir(parents=True, exist_ok=True)
    name = folder.resolve().name
    archive = store / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.tar.gz"
    unfinished = archive.with_suffix(".part")
    with tarfile.open(unfinished, "w:gz") as tar:
        tar.add(folder, arcname=name)
    checksum_file(archive).write_text(f"{hash_file(unfinished)}  {archive.name}\n")
    unfinished.rename(archive)
    print(f"created {archive}: {count_members(archive)} entries, {archive.stat().st_size} bytes")
    for old in find_archives(store, name)[:-keep] if keep > 0 else ():
        old.unlink()
        checksum_file(old).unlink(missing_ok=True)
        print(f"removed {old}")


def restore_archive(archive: Path, target: Path) -> None:
    if target.exists():
        raise ValueError(f"{target} exists")
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        tar.extractall(target)
    print(f"restored {archive} to {target}")


def count_members(archive: Path) -> int:
    with tarfile.open(archive) as tar:
        return sum(1 for _ in tar)


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
