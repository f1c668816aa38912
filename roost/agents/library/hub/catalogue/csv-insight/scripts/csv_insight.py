"""Describe a table, or aggregate one of its columns by another."""

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TextIO

DISTINCT_LIMIT = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("describe").add_argument("file")
    group = commands.add_parser("group")
    group.add_argument("file")
    group.add_argument("--by", required=True)
    group.add_argument("--value", required=True)
    group.add_argument("--mean", action="store_true")
    group.add_argument("--count", action="store_true")
    options = parser.parse_args()
    try:
        with open(options.file, newline="", encoding="utf-8-sig", errors="replace") as file:
            if options.command == "describe":
                describe_table(file)
            else:
                group_rows(
                    file, options.by, options.value, "count" if options.count else "mean" if options.mean else "sum"
                )
    except (OSError, ValueError, csv.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def read_rows(file: TextIO) -> Iterator[list[str]]:
    sample = file.read(8192)
    file.seek(0)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    return csv.reader(file, dialect)


def describe_table(file: TextIO) -> None:
    rows = read_rows(file)
    header: list[str] = next(rows, list[str]())
    values: list[Counter[str]] = [Counter() for _ in header]
    empty = [0] * len(header)
    ranges: list[tuple[float, float, float, int] | None] = [None] * len(header)
    count = 0
    for row in rows:
        count += 1
        for column in range(len(header)):
            cell = row[column].strip() if column < len(row) else ""
            if not cell:
                empty[column] += 1
                continue
            if len(values[column]) < DISTINCT_LIMIT or cell in values[column]:
                values[column][cell] += 1
            number = as_number(cell)
            if number is not None:
                low, high, total, seen = ranges[column] or (number, number, 0.0, 0)
                ranges[column] = (min(low, number), max(high, number), total + number, seen + 1)
    print(f"{count} rows, {len(header)} columns")
    for column, name in enumerate(header):
        print(f"\n{name}: {empty[column]} empty, {len(values[column])} distinct")
        found = ranges[column]
        if found and found[3] == count - empty[column]:
            print(f"  numbers from {found[0]:g} to {found[1]:g}, sum {found[2]:g}, mean {found[2] / found[3]:g}")
        for value, times in values[column].most_common(3):
            print(f"  {times} x {value[:60]}")


def group_rows(file: TextIO, by: str, value: str, how: str) -> None:
    rows = read_rows(file)
    header: list[str] = next(rows, list[str]())
    for name in (by, value):
        if name not in header:
            raise ValueError(f"no column {name!r}; there are {', '.join(header)}")
    key, number_at = header.index(by), header.index(value)
    sums: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    skipped = 0
    for row in rows:
        number = as_number(row[number_at].strip()) if len(row) > max(key, number_at) else None
        if number is None:
            skipped += 1
            continue
        sums[row[key]] += number
        counts[row[key]] += 1
    results = {
        name: {"sum": sums[name], "mean": sums[name] / counts[name], "count": counts[name]}[how] for name in sums
    }
    for name, result in sorted(results.items(), key=lambda item: -item[1]):
        print(f"{result:g}\t{name}")
    if skipped:
        print(f"{skipped} rows without a number were left out", file=sys.stderr)


def as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


if __name__ == "__main__":
    sys.exit(main())
