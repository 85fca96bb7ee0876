import { describe, expect, it } from "vitest";
import { auditWords, labelledDetails, readAuditKind, readPrincipal } from "./audit";

const words = (what: string, details: unknown) => auditWords({ what, details });
const CODER = { person: "CODER" };

describe("a line of the audit", () => {
	it.each([
		["acting-as", { person: "CODER", method: "GET" }, "looks", ["saw the ledger as ", CODER]],
		["acting-as", { person: "CODER", method: "POST" }, "looks", ["acted as ", CODER]],
		["acting-as", {}, "looks", ["saw the ledger as ", "a person"]],
		["audit-read", { person: "" }, "looks", ["read every entry, whoever it was addressed to"]],
		["audit-read", { what: "verify" }, "looks", ["checked the ledger against its records"]],
		[
			"token-minted",
			{ token_id: "t_1", person_id: "CODER", write: true },
			"tokens",
			["made the token t_1 for ", CODER, ", which may read and write"],
		],
		["forked", { world_id: "payments" }, "settings", ["made this ledger as a fork of ", { ledger: "payments" }]],
		[
			"rejection",
			{ reason: "VISIBILITY_INVALID: entries[0]" },
			"refusals",
			["was refused: VISIBILITY_INVALID: entries[0]"],
		],
		["writer-failed", { why: "it exited with 1" }, "writer", ["failed: it exited with 1"]],
		["tool", { fault: null }, "writer", ["asked a question"]],
	])("%s is said in words", (what, details, kind, said) => {
		expect(words(what, details)).toEqual({ kind, said });
	});

	it("of an unknown kind keeps its word, whatever its details are", () => {
		expect(words("time-travelled", { by: 3 })).toEqual({ kind: "other", said: ["time-travelled"] });
		expect(words("rejection", null).said).toEqual(["was refused: no reason was recorded"]);
	});
});

it("who did it is the owner, the server, the writer, a person, or as it was recorded", () => {
	expect(["owner", "system", "writer", "person:ANN", "robot"].map(readPrincipal)).toEqual([
		{ kind: "owner" },
		{ kind: "system" },
		{ kind: "writer" },
		{ kind: "person", person: "ANN" },
		{ kind: "unknown", text: "robot" },
	]);
});

it("details name the operator by label, also in paths, and leave other words alone", () => {
	const details = { path: "/v1/worlds/w/views/GEORGE", to: ["GEORGE", "ANN"], text: "GEORGETOWN", count: 3, by: null };
	expect(labelledDetails(details, "The owner")).toEqual({
		path: "/v1/worlds/w/views/The owner",
		to: ["The owner", "ANN"],
		text: "GEORGETOWN",
		count: 3,
		by: null,
	});
});

it("a kind is read from a URL, and other words are none", () => {
	expect(["looks", "Looks", "", null].map(readAuditKind)).toEqual(["looks", null, null, null]);
});
