"""A journal with one Markdown file a day."""

import argparse
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

KINDS = ("note", "decision", "open", "done", "summary")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("journal"))
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add")
    add.add_argument("text")
    add.add_argument("--kind", choices=KINDS, default="note")
    show = commands.add_parser("show")
    show.add_argument("--days", type=int, default=1)
    show.add_argument("--kind", choices=KINDS)
    for command in (add, show):
        command.add_argument("--date", type=date.fromisoformat, default=date.today())
    commands.add_parser("find").add_argument("words", nargs="+")
    options = parser.parse_args()
    if options.command == "add":
        add_entry(options.folder, options.date, options.kind, options.text)
    elif options.command == "show":
        first = options.date - timedelta(days=options.days - 1)
        print_entries(options.folder, first, options.date, [f" **{options.kind}** "] if options.kind else [])
    else:
        print_entries(options.folder, date.min, date.max, [word.lower() for word in options.words])
    return 0


def add_entry(folder: Path, day: date, kind: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{day.isoformat()}.md"
    title = "" if file.exists() else f"# {day.isoformat()}\n\n"
    with file.open("a", encoding="utf-8") as journal:
        journal.write(f"{title}- {datetime.now():%H:%M} **{kind}** {' '.join(text.split())}\n")
    print(f"added to {file}")


def print_entries(folder: Path, first: date, last: date, words: list[str]) -> None:
    found = 0
    for file in sorted(folder.glob("????-??-??.md")):
        if not first.isoformat() <= file.stem <= last.isoformat():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("- ") and all(word in line.lower() for word in words):
                print(f"{file.stem} {line[2:]}")
                found += 1
    if not found:
        print("no entries")


if __name__ == "__main__":
    sys.exit(main())
