/** A newer server may have more words than this page: they are shown as they came. */

import { expect, test } from "vitest";
import { turnWords } from "./agent-turns";
import { attentionKindWord } from "./attention";
import { emptyRun, isTurnOver } from "./run";
import { newNode, uuid } from "./run-fixtures";
import { waitWords } from "./run-waits";
import { nodeDetail, nodeStateWords, phaseWord, runStateWords, stallWords } from "./run-words";

const NEW = "hibernating" as never;
const AT = "2026-11-18T15:00:00Z";
const wait = { reason: NEW, owner: { kind: "daemon" as const }, ageMs: 0, since: AT };

test.each([
	["the state of a run", runStateWords({ status: NEW, phase: "EXECUTE", updatedAt: AT }).word],
	[
		"why a run is paused",
		runStateWords({ status: "paused", phase: "EXECUTE", pausedReason: NEW, updatedAt: AT }).reason,
	],
	["a phase", phaseWord(NEW)],
	["why a run stalled", stallWords({ reason: NEW, count: 3 } as never)],
	["the state of an agent", stateOf({ status: NEW }).word],
	["why an agent is blocked", stateOf({ status: "blocked", block: { reason: NEW } }).reason],
	["the state of a turn", turnWords(NEW).word],
	["a kind of inbox item", attentionKindWord(NEW)],
	["a reason to wait", waitWords(wait)],
	["why a run does not run", waitWords({ ...wait, reason: "run-stopped", runStatus: NEW })],
])("%s", (_, words) => {
	expect(words).toContain("hibernating");
});

test("a turn goes on with a status that is not known", () => {
	expect(isTurnOver(NEW)).toBe(false);
});

function stateOf(fields: object) {
	const node = newNode(uuid(1), "Coder", fields);
	return nodeStateWords(node, nodeDetail(emptyRun(uuid(9)), node.id), Date.parse(AT));
}
