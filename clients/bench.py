#!/usr/bin/env python3
"""Measures the three clients side by side: one connection each, pipelined, against one server.

The clients take turns, round by round; medians count. Prints a table, or puts it into a document between two marks:

    clients/bench.py [--rounds N] [--write docs/performance.md]
"""

import argparse
import os
import re
import statistics
import sys
from pathlib import Path

from interop.run import ROOT, Failure, output, report, server

MARKS = ("<!-- clients -->", "<!-- /clients -->")
LEAST_PERCENT = 60
FIGURES = {"appends_per_second": "durable appends of 1 KiB", "pages_per_second": "`GET_LAST(64, payload)`"}


def programs():
    """The benchmark program of each client, built."""
    go = ROOT / "target/tools/bench-go"
    output(["go", "build", "-C", ROOT / "clients/go", "-o", go, "./internal/bench"], dict(os.environ), 300)
    return {
        "Rust": [ROOT / "target/release/examples/bench_client"],
        "Go": [go, "-rounds", "1"],
        "TypeScript": ["node", ROOT / "clients/ts/bench/bench.mjs"],
    }


def measure(rounds):
    """Every figure of every client in every round."""
    figures = {}
    for number in range(rounds):
        for client, command in programs().items():
            with server(os.environ["TURNKEEP_BIN"]) as running:
                measured = report(command, running.environment())
            print(f"round {number + 1}: {client}: {measured}", file=sys.stderr)
            for figure in FIGURES:
                figures.setdefault((client, figure), []).append(measured[figure])
    return {key: statistics.median(values) for key, values in figures.items()}


def table(figures, rounds):
    """The figures as Markdown."""
    lines = ["| client | " + " | ".join(FIGURES.values()) + " |", "|---|---|---|"]
    for client in dict.fromkeys(client for client, _ in figures):
        cells = [cell(figures[client, figure], figures["Rust", figure]) for figure in FIGURES]
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    lines.append("")
    lines.append(f"Medians of {rounds} rounds, in percent of the Rust client; must reach {LEAST_PERCENT} %.")
    return "\n".join(lines)


def cell(value, rust):
    """A rate and its share of the Rust client's."""
    rate = f"{value:,.0f}".replace(",", " ")
    return f"{rate}/s, {100 * value / rust:.0f} %"


def put(document, text):
    """Replaces what is between the marks."""
    before = document.read_text()
    begin, end = (re.escape(mark) for mark in MARKS)
    replaced = f"{MARKS[0]}\n{text}\n{MARKS[1]}"
    after, count = re.subn(f"{begin}.*{end}", lambda _: replaced, before, flags=re.DOTALL)
    if count != 1:
        raise Failure(f"{document} must hold {MARKS[0]} and {MARKS[1]} once")
    document.write_text(after)


def main():
    """Reads the arguments, measures, shows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    try:
        text = table(measure(arguments.rounds), arguments.rounds)
        put(arguments.write, text) if arguments.write else print(text)
    except Failure as failure:
        sys.exit(f"bench: {failure}")


if __name__ == "__main__":
    main()
