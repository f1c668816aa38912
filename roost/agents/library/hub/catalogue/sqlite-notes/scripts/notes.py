"""Notes with tags in an SQLite file."""

import argparse
import sqlite3
import sys
from datetime import UTC, datetime

SCHEMA = """CREATE TABLE IF NOT EXISTS notes
    (id INTEGER PRIMARY KEY, at TEXT NOT NULL, tags TEXT NOT NULL, text TEXT NOT NULL)"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", default="notes.db")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add")
    add.add_argument("text")
    add.add_argument("--tag", action="append", default=[])
    find = commands.add_parser("find")
    find.add_argument("words", nargs="+")
    listing = commands.add_parser("list")
    listing.add_argument("--tag", action="append", default=[])
    for command in (find, listing):
        command.add_argument("--limit", type=int, default=20)
    edit = commands.add_parser("edit")
    edit.add_argument("id", type=int)
    edit.add_argument("text")
    commands.add_parser("delete").add_argument("id", type=int)
    options = parser.parse_args()
    with sqlite3.connect(options.db) as db:
        db.execute(SCHEMA)
        return run_command(db, options)


def run_command(db: sqlite3.Connection, options: argparse.Namespace) -> int:
    if options.command == "add":
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        row = (now, " ".join(sorted(set(options.tag))), options.text)
        added = db.execute("INSERT INTO notes (at, tags, text) VALUES (?, ?, ?)", row)
        print(f"added note {added.lastrowid}")
        return 0
    if options.command in ("find", "list"):
        return print_notes(db, options)
    if options.command == "edit":
        changed = db.execute("UPDATE notes SET text = ? WHERE id = ?", (options.text, options.id))
    else:
        changed = db.execute("DELETE FROM notes WHERE id = ?", (options.id,))
    if not changed.rowcount:
        print(f"error: there is no note {options.id}", file=sys.stderr)
        return 1
    print(f"{'changed' if options.command == 'edit' else 'deleted'} note {options.id}")
    return 0


def print_notes(db: sqlite3.Connection, options: argparse.Namespace) -> int:
    words: list[str] = options.words if options.command == "find" else []
    tags: list[str] = options.tag if options.command == "list" else []
    query = "SELECT id, at, tags, text FROM notes WHERE 1"
    query += " AND text || ' ' || tags LIKE ? ESCAPE '\\'" * len(
        words
    ) + " AND ' ' || tags || ' ' LIKE ? ESCAPE '\\'" * len(tags)
    patterns = [f"%{escape_like(word)}%" for word in words] + [f"% {escape_like(tag)} %" for tag in tags]
    rows = db.execute(f"{query} ORDER BY id DESC LIMIT ?", (*patterns, options.limit)).fetchall()
    for number, at, note_tags, text in rows:
        print(f"{number}  {at}  {text}" + (f"  [{note_tags}]" if note_tags else ""))
    if not rows:
        print("no notes")
    return 0


def escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


if __name__ == "__main__":
    sys.exit(main())
