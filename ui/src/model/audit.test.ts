import { describe, expect, it } from "vitest";
import { auditWords, readPrincipal } from "./audit";

const words = (what: string, details: unknown) => auditWords({ what, details });

describe("a line of the audit", () => {
	it.each([
		["acting-as", { person: "CODER", method: "GET" }, "looks", "saw the ledger as CODER"],
		["acting-as", { person: "CODER", method: "POST" }, "looks", "acted as CODER"],
		["audit-read", { person: "" }, "looks", "read every entry, whoever it was addressed to"],
		["audit-read", { what: "verify" }, "looks", "checked the ledger against its records"],
		[
			"token-minted",
			{ token_id: "t_1", person_id: "CODER", write: true },
			"tokens",
			"made the token t_1 for CODER, which may read and write",
		],
		[
			"rejection",
			{ reason: "VISIBILITY_INVALID: entries[0]" },
			"refusals",
			"was refused: VISIBILITY_INVALID: entries[0]",
		],
	])("%s is said in words", (what, details, kind, text) => {
		expect(words(what, details)).toEqual({ kind, text });
	});

	it("of an unknown kind keeps its word, whatever its details are", () => {
		expect(words("time-travelled", { by: 3 })).toEqual({ kind: "other", text: "time-travelled" });
		expect(words("rejection", null).text).toBe("was refused: no reason was recorded");
	});
});

it("who did it is the owner, the server, a person, or as it was recorded", () => {
	expect(["owner", "system", "person:ANN", "robot"].map(readPrincipal)).toEqual([
		{ kind: "owner" },
		{ kind: "system" },
		{ kind: "person", person: "ANN" },
		{ kind: "unknown", text: "robot" },
	]);
});
