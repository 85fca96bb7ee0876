#!/usr/bin/env python3
"""Attaches a model to a world: writer = "cmd: python3 writer.py NAME COMMAND...", where COMMAND reads a prompt and prints words."""
import json, subprocess, sys
name, *command = sys.argv[1:]
for beat in map(json.loads, iter(sys.stdin.readline, "")):
    request, by = beat["request_id"], {"engine": command[0], "actor": beat["actor"]}
    # It keeps nothing: in every beat it asks what was said last, as far as this writer may see it.
    last = {"name": "LEDGER_SEARCH", "query_text": "", "constraints": {"time_window": {"from": "0001-01-01T00:00:00Z"}, "limit": 50}}
    print(json.dumps({"type": "tool", "request": {"tool_request_id": request, "request_id": request, "requested_by": {**by, "knowledge_view": beat["view"]}, "tool": last}}), flush=True)
    said = [f"{entry['author_id']}: {entry['verbatim_excerpt']}" for entry in json.loads(sys.stdin.readline())["pack"]["results"]]
    before = "\n".join(reversed(said))
    prompt = f"You are {name}. What was said before:\n{before}\n\nNow: {beat['operator_text']}\nAnswer in your own words, or with nothing."
    text = subprocess.run(command, input=prompt, capture_output=True, text=True).stdout.strip()
    entry = {"request_id": request, "author": {"author_id": name, "author_class": "PERSON"}, "channel": "PEOPLE", "visibility": {"scope": "PUBLIC"}, "text": text}
    bundle = {"request_id": request, "proposed_by": by, "wrote": True, "entries": [entry]}
    print(json.dumps({"type": "proposal", "bundle": bundle} if text else {"type": "no_write"}), flush=True)
