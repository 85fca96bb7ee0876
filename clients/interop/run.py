#!/usr/bin/env python3
"""Runs the interoperability matrix: each client writes, each reads, against the real server.

README.md beside this file says what the programs do and what is compared. Exit code 0 if nothing differs, 1 if
something does or a program fails; every wait has a limit, and the servers end with this program.
"""

import argparse
import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES_FILE = Path(__file__).with_name("cases.json")
LANGUAGES = ["rust", "go", "ts"]
WRITES_ZSTD = {"rust", "go"}
SHOWN_BYTES_MAX = 4096
PROGRAM_SECONDS = 120
START_SECONDS = 30
BUILD_SECONDS = 300


class Failure(Exception):
    """A program that failed, or a difference; the text is for a person."""


@dataclass
class Results:
    """How many comparisons held, and one text for each that did not."""

    passed: int = 0
    complaints: list = field(default_factory=list)

    def add(self, name, complaint):
        if complaint is None:
            self.passed += 1
        else:
            self.complaints.append(f"{name}: {complaint}")


class Server:
    """A running server: where it listens and its token."""

    def __init__(self, binary, data, started):
        self.binary = binary
        self.data = data
        self.tcp = started["tcp"]
        self.http = started["http"]
        self.token = Path(data, "token").read_text().strip()

    def environment(self):
        names = {"TURNKEEP_ADDR": self.tcp, "TURNKEEP_HTTP": self.http, "TURNKEEP_TOKEN": self.token}
        return {**os.environ, **names, "TURNKEEP_DATA": self.data}

    def get(self, path):
        """The body of a GET from the gateway."""
        request = urllib.request.Request(f"http://{self.http}{path}")
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=PROGRAM_SECONDS) as answer:
            return answer.read()


@contextmanager
def server(binary):
    """A server on free ports and a directory of its own, ended on the way out."""
    with tempfile.TemporaryDirectory(prefix="turnkeep-interop-") as data:
        command = [binary, "up", "--json", "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        process = subprocess.Popen(["timeout", str(10 * PROGRAM_SECONDS), *command], stdout=subprocess.PIPE)
        try:
            yield Server(binary, data, first_line(process))
        finally:
            process.terminate()
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def first_line(process):
    """The line in which a server says where it listens."""
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    if not line:
        raise Failure("the server does not start")
    return json.loads(line)


def output(command, environment, seconds=PROGRAM_SECONDS):
    """What a command prints, or a failure that says what it complained about."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is missing: build it first, as ./x test does") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{shlex.join(command)}: no end after {seconds} s") from error
    if done.returncode != 0:
        complaint = done.stderr.decode(errors="replace")[-2000:]
        raise Failure(f"{shlex.join(command)}: exit code {done.returncode}\n{complaint}")
    return done.stdout.decode()


def report(command, environment):
    """The line of JSON that a program prints."""
    return json.loads(output(command, environment))


def written_bytes(case):
    """The bytes of a case's payload, made from its description independently of all clients."""
    write = case["write"]
    if "record" in write:
        return bytes.fromhex(case["msgpack"])
    return bytes.fromhex(write["bytes"]) + noise(write.get("noise", 0)) + bytes(write.get("zeros", 0))


def noise(count):
    state, out = 1, bytearray(count)
    for at in range(count):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        out[at] = state >> 24
    return bytes(out)


def kept_compressed(case, compression):
    """Whether the server gives a case compressed in its stored form, after it was sent in this one."""
    return case.get("kept_zstd") == "always" or (case.get("kept_zstd") == "if_sent" and compression == "zstd")


def expected_turn(case, payload, depth, compression, content_hash):
    """What every reader must report of a case; `content_hash` names bytes that were compared already."""
    shown = payload.hex() if len(payload) <= SHOWN_BYTES_MAX else None
    return {
        "type_id": "interop.Record",
        "type_version": 1,
        "encoding": 1,
        "depth": depth,
        "uncompressed_len": len(payload),
        "content_hash": content_hash,
        "stored_compression": int(kept_compressed(case, compression)),
        "blake3": content_hash,
        "payload": shown,
        "record": case["record"],
        "reencoded": shown if case["record"] else None,
    }


def expected_turns(running, context, cases, payloads, compression):
    """What must be read, after the bytes that the server holds were compared with the cases."""
    page = json.loads(running.get(f"/v1/contexts/{context}/turns?view=raw&bytes_render=len_only"))
    if len(page["turns"]) != len(cases):
        raise Failure(f"{len(cases)} turns were written, the gateway has {len(page['turns'])}")
    expected = []
    for turn, case, payload in zip(page["turns"], cases, payloads):
        content_hash = turn["content_hash_b3"]
        if running.get(f"/v1/blobs/{content_hash}") != payload:
            raise Failure(f"{case['name']}: the bytes that were written are not the case's")
        expected.append(expected_turn(case, payload, len(expected), compression, content_hash))
    return expected


def compare(cases, expected, actual):
    """Fails with the first thing that a reader reports otherwise than expected."""
    if len(actual) != len(expected):
        raise Failure(f"{len(expected)} turns are there, {len(actual)} were reported")
    for case, want, got in zip(cases, expected, actual):
        for key in want.keys() | got.keys():
            if key not in got or key not in want or got[key] != want[key]:
                shown = f"{str(want.get(key))[:200]!r}, not {str(got.get(key))[:200]!r}"
                raise Failure(f"{case['name']}: {key} must be {shown}")


def cell(work):
    """Runs one cell; its word in the matrix and its complaint."""
    try:
        return work(), None
    except (Failure, OSError, ValueError, KeyError) as failure:
        return "FAILS", str(failure)


def row(binary, programs, writer, compression, cases, payloads):
    """One writer in one form, read by all: words for the matrix, and complaints."""
    with server(binary) as running:
        environment = running.environment()
        written = report([*programs[writer], "write", CASES_FILE, compression], environment)
        context = written["context_id"]
        expected = expected_turns(running, context, cases, payloads, compression)

        def read(reader):
            compare(cases, expected, report([*programs[reader], "read", context], environment))
            return "ok"

        return [cell(lambda reader=reader: read(reader)) for reader in programs]


def matrix(binary, programs, cases):
    """Runs and prints all rows."""
    payloads = [written_bytes(case) for case in cases]
    print(f"{'writes':<14}" + "".join(f"{'read by ' + reader:<14}" for reader in programs))
    results = Results()
    for writer in programs:
        for compression in ["none", "zstd"] if writer in WRITES_ZSTD else ["none"]:
            name = writer if compression == "none" else f"{writer}, zstd"
            cells, complaint = cell(lambda: row(binary, programs, writer, compression, cases, payloads))
            cells = cells if complaint is None else [("FAILS", complaint)] * len(programs)
            print(f"{name:<14}" + "".join(f"{word:<14}" for word, _ in cells), flush=True)
            for reader, (_, why) in zip(programs, cells):
                results.add(f"{name} → {reader}", why)
    return results


def story(binary, programs, go_writer):
    """The Go writer's turns, read typed by TypeScript, raw by Rust, and shown by `turnkeep log`."""
    with server(binary) as running:
        environment = running.environment()
        output(go_writer, environment)
        context = json.loads(running.get("/v1/contexts"))["contexts"][0]["context_id"]
        typed = report([*programs["ts"], "typed", context], environment)
        raw = report([*programs["rust"], "read", context], environment)
        log = [binary, "log", context, "--server", running.http, "--token", running.token]
        shown = output(log, environment)
        logged = [json.loads(line)["data"] for line in output([*log, "--json"], environment).splitlines()]
    if not typed or typed != logged[::-1]:
        raise Failure(f"TypeScript reads {typed}, turnkeep log gives {logged[::-1]}")
    if len(raw) != len(typed):
        raise Failure(f"{len(typed)} turns are typed, Rust reads {len(raw)}")
    for data, turn in zip(typed, raw):
        check_told(data, turn, shown)
    return len(typed)


def check_told(data, turn, shown):
    """Fails unless a turn is in the log as it was read typed and raw."""
    if f"blob:{turn['blake3']}" not in shown:
        raise Failure(f"turnkeep log does not show the payload {turn['blake3']}:\n{shown}")
    absent = [name for name in data if f"    {name}:" not in shown]
    if absent:
        raise Failure(f"turnkeep log does not show {absent}:\n{shown}")
    texts = [value for value in data.values() if isinstance(value, str)]
    if not any(text.encode().hex() in turn["payload"] for text in texts):
        raise Failure(f"the raw payload {turn['payload']} holds none of the texts {texts}")


def built_go(package, folder):
    """A program of the Go module, built into a folder."""
    binary = Path(folder, Path(package).name)
    command = ["go", "build", "-o", binary, f"./{package}"]
    done = subprocess.run(command, cwd=ROOT / "clients/go", timeout=BUILD_SECONDS, check=False)
    if done.returncode != 0:
        raise Failure(f"clients/go/{package} does not build")
    return [binary]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="which clients, such as rust,go")
    parser.add_argument("--rust", default=str(ROOT / "target/debug/examples/interop"), help="the Rust program, if built elsewhere")
    parsed = parser.parse_args()
    parsed.languages = parsed.languages.split(",")
    if not set(parsed.languages) <= set(LANGUAGES):
        parser.error(f"the languages are {', '.join(LANGUAGES)}")
    return parsed


def run(given, folder):
    binary = os.environ.get("TURNKEEP_BIN")
    if not binary:
        raise Failure("no server binary: run ./x test, or set TURNKEEP_BIN")
    if "ts" in given.languages and not (ROOT / "clients/ts/dist").is_dir():
        raise Failure("clients/ts is not built: run npm ci and npm run build there, as ./x test does")
    programs = {"rust": [given.rust], "ts": ["node", ROOT / "clients/ts/interop/interop.mjs"]}
    if "go" in given.languages:
        programs["go"] = built_go("internal/interop", folder)
    programs = {language: programs[language] for language in given.languages}
    results = matrix(binary, programs, json.loads(CASES_FILE.read_text()))
    if len(programs) == len(LANGUAGES):
        told, complaint = cell(lambda: story(binary, programs, built_go("examples/writer", folder)))
        print(f"story: {f'{told} turns of the Go writer, read by all' if complaint is None else told}")
        results.add("story", complaint)
    return results


def main():
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="turnkeep-interop-") as folder:
        try:
            results = run(given, folder)
        except Failure as failure:
            results = Results(complaints=[str(failure)])
    for complaint in results.complaints:
        print(complaint, file=sys.stderr)
    print(f"interop: {results.passed} passed, {len(results.complaints)} failed")
    return 1 if results.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
