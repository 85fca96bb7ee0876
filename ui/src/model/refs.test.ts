import { describe, expect, test } from "vitest";
import { formatRef, hasChain, parseRef, shortRefName } from "./refs";

const ID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

describe("a ref", () => {
	test.each([
		"ctx:12",
		"turn:345",
		`turn:${ID}`,
		"blob:af1349b9",
		"session:review",
		"review:3",
		"@last:3",
		`run:${ID}`,
		`node:${ID}`,
		`edge:${ID}`,
		`envelope:${ID}`,
		`message:${ID}`,
		`approval:${ID}`,
		`artifact://${ID}`,
		`artifact://${ID}#src/lib.rs:3`,
		`artifact://${ID}#C:/odd:name:12`,
		"world:payments",
		"person:payments/CODER",
		"entry:e_13p0m06cwpf109bwv05yzd9f6c",
		"type:com.example.Turn",
		"type:com.example.Turn@3",
	])("%s reads back as it prints", (text) => {
		const ref = parseRef(text);
		expect(ref).not.toBeNull();
		if (ref !== null) expect(formatRef(ref)).toBe(text);
	});

	test.each([
		"",
		"hello",
		"turn:",
		"turn:0",
		"turn:99999999999999999999",
		"ctx:-1",
		"run:12",
		`run:${ID.toUpperCase()}`,
		"blob:af",
		"blob:xyz1",
		"artifact://x",
		`artifact://${ID}#src/lib.rs`,
		`artifact://${ID}#src/lib.rs:0`,
		`artifact://${ID}#:3`,
		"entry:b_13p0m06cwpf109bwv05yzd9f6c",
		"person:payments",
		"http://example.org",
		"http://example.org:80",
		"two words:3",
		`world:${"x".repeat(65)}`,
	])("%s is none", (text) => {
		expect(parseRef(text)).toBeNull();
	});

	test("accepts what other places write", () => {
		expect(parseRef(`artifact:${ID}`)).toEqual({ kind: "artifact", id: ID });
		expect(parseRef(`contextpack://${ID}`)).toEqual({ kind: "artifact", id: ID });
		expect(parseRef("session:review:3")).toEqual({ kind: "capturedTurn", session: "review", seq: "3" });
		expect(parseRef("  ctx:7\n")).toEqual({ kind: "context", id: "7" });
	});

	test("keeps numbers beyond 2^53 as text", () => {
		expect(parseRef("turn:18446744073709551615")).toEqual({ kind: "turn", id: "18446744073709551615" });
	});

	test("has a short name", () => {
		expect(shortRefName({ kind: "run", id: ID })).toBe("6f0a2d0e");
		expect(shortRefName({ kind: "line", artifact: ID, path: "a.ts", line: 4 })).toBe("a.ts:4");
	});

	test("has a chain only where the server follows one", () => {
		expect(hasChain({ kind: "entry", id: "e_13p0m06cwpf109bwv05yzd9f6c" })).toBe(true);
		expect(hasChain({ kind: "world", name: "payments" })).toBe(false);
	});
});
