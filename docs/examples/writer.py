#!/usr/bin/env python3
"""Attaches a model to a world: writer = "cmd: python3 writer.py NAME COMMAND...", where COMMAND reads a prompt and prints words."""
import json, subprocess, sys
name, command = sys.argv[1], sys.argv[2:]
for beat in map(json.loads, sys.stdin):
    request = beat["request_id"]
    scene = beat.get("rehydration", beat.get("scene_anchor", {})).get("text", "")
    prompt = f"You are {name}. What was said before:\n{scene}\n\nNow: {beat['operator_text']}\nAnswer in your own words, or with nothing."
    text = subprocess.run(command, input=prompt, capture_output=True, text=True).stdout.strip()
    entry = {"request_id": request, "author": {"author_id": name, "author_class": "PERSON"}, "channel": "PEOPLE", "visibility": {"scope": "PUBLIC"}, "text": text}
    bundle = {"request_id": request, "proposed_by": {"engine": command[0], "actor": beat["actor"]}, "wrote": True, "entries": [entry]}
    print(json.dumps({"type": "proposal", "bundle": bundle} if text else {"type": "no_write"}), flush=True)
