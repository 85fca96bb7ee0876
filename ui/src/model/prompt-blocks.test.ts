import { expect, test } from "vitest";
import { readPromptBlocks } from "./prompt-blocks";

const blocks = { system: "s", role: "r", mode: "m", task: "t", override: false, sentHash: "a", fullHash: "b" };

test("a full prompt sends every block, a delta the mode and the task", () => {
	const sent = (kind: string) =>
		readPromptBlocks(JSON.stringify({ ...blocks, kind }))?.blocks.map(({ name, isSent }) => `${name} ${isSent}`);
	expect(sent("full")).toEqual(["system true", "role true", "mode true", "task true"]);
	expect(sent("delta")).toEqual(["system false", "role false", "mode true", "task true"]);
});

test("a role in the operator's words says so, and blocks that are missing are left out", () => {
	const read = readPromptBlocks(JSON.stringify({ role: "Be brief.", override: true, kind: "full", mode: "" }));
	expect(read?.blocks.map(({ title }) => title)).toEqual(["Role, in your own words"]);
	expect(read?.sentHash).toBeNull();
});

test("what is no such file is refused", () => {
	expect([readPromptBlocks("no"), readPromptBlocks("3")]).toEqual([null, null]);
});
