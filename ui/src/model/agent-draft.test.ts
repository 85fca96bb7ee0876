import { expect, test } from "vitest";
import { type AgentDraft, changesOf, draftOf } from "./agent-draft";
import { newNode, uuid } from "./run-fixtures";

const node = newNode(uuid(1), "Worker", { alias: "w", provider: "claude" });
const changed = (fields: Partial<AgentDraft>) => changesOf(node, { ...draftOf(node), ...fields });

test("a draft that was not changed sends nothing", () => {
	expect(changed({})).toEqual({ fields: {}, error: null });
});

test("only what was changed is sent", () => {
	expect(changed({ label: " Tester " }).fields).toEqual({ label: "Tester" });
	expect(changed({ alias: "" }).fields).toEqual({ alias: null });
	expect(changed({ customSystemPrompt: "Be brief." }).fields).toEqual({ customSystemPrompt: "Be brief." });
	const { rights } = draftOf(node);
	expect(changed({ rights: { ...rights, writeCode: false, asks: false } }).fields).toEqual({
		capabilities: { writeCode: false },
		permissions: { cliPermissionsMode: "skip" },
	});
});

test("a program is one of the known ones or one of the configuration", () => {
	expect(changed({ program: "codex" }).fields).toEqual({ provider: "codex", providerName: null });
	expect(changed({ program: "mine" }).fields).toEqual({ provider: "custom", providerName: "mine" });
});

test("a budget is a number or none", () => {
	expect(changed({ tokens: "5000", costUsd: "" }).fields).toEqual({ budget: { tokens: 5000, costUsd: null } });
	expect(changed({ tokens: "many" }).error).toBe("The tokens must be a whole number");
	expect(changed({ costUsd: "-1" }).error).toBe("The dollars must be a number above 0");
	expect(changed({ label: " " }).error).toBe("An agent needs a name");
});
