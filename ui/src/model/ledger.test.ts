import { expect, test } from "vitest";
import { connectLine } from "./connect-line";
import {
	audienceOf,
	audienceWords,
	eyesKey,
	eyesQuery,
	knownPeople,
	type Ledger,
	labelOf,
	ledgerTime,
	OPERATOR_ID,
	readEyes,
} from "./ledger";
import { isSearch, readLedgerSearch, searchTool } from "./ledger-search";
import { appendPage, justBefore, type LedgerStream, prependLines, readPage } from "./ledger-stream";
import {
	headLength,
	indexOfByte,
	piecesOf,
	queryWords,
	rangeOfBytes,
	rangesOfQuote,
	rangesOfWords,
	splitExcerpts,
	windowAround,
} from "./ledger-text";
import { operatorEnvelope, personBeat, readRefusal } from "./ledger-write";
import { changedSettings, EMPTY_LEDGER, ledgerBody, nameFault, personBody } from "./new-ledger";

const LEDGER = {
	operator_label: "The owner",
	registry: "CLOSED",
	persons: [{ person_id: "PLANNER", display_label: "Planner" }, { person_id: "CODER" }],
} as Ledger;
const label = (id: string) => labelOf(LEDGER, id);

test("eyes come from the URL and go back to it", () => {
	for (const [as, audit] of [
		[null, null],
		["PLANNER", null],
		[null, "1"],
	] as const) {
		const query = eyesQuery(readEyes(as, audit));
		expect([query.as ?? null, query.audit ?? null]).toEqual([as, audit]);
	}
	expect(readEyes("", null).kind).toBe("operator");
	// A person may have any legal name, also one that this file uses.
	expect(eyesKey({ kind: "person", person: "audit" })).not.toBe(eyesKey({ kind: "audit" }));
});

test("the operator's id is never shown", () => {
	expect(label(OPERATOR_ID)).toBe("The owner");
	expect(labelOf(undefined, OPERATOR_ID)).toBe("Operator");
	expect(label("CODER")).toBe("CODER");
	expect(knownPeople({ ...LEDGER, registry: "OPEN" } as Ledger, [OPERATOR_ID, "ANN", "SYSTEM"])).toEqual([
		"ANN",
		"CODER",
		"PLANNER",
	]);
	expect(knownPeople(LEDGER, ["ANN"])).toEqual(["CODER", "PLANNER"]);
});

test("an audience is said in names, with the author", () => {
	const only = { scope: "PRIVATE", visible_to: ["CODER", OPERATOR_ID] };
	expect(audienceWords(audienceOf({ scope: "PUBLIC", visible_to: [] }, "PLANNER"), label)).toBe("everyone");
	expect(audienceWords(audienceOf(only, "PLANNER"), label)).toBe("only Planner, CODER and The owner");
	expect(audienceWords(audienceOf({ scope: "PRIVATE", visible_to: ["PLANNER"] }, "PLANNER"), label)).toBe(
		"only Planner",
	);
});

test("times are those of the ledger's zone", () => {
	expect(ledgerTime("2026-11-18T23:30:05.100Z", "Europe/Berlin")).toEqual({ day: "2026-11-19", clock: "00:30:05" });
	expect(ledgerTime("2026-11-18T23:30:05.100Z", "Nowhere/Land")).toEqual({ day: "2026-11-18", clock: "23:30:05" });
	expect(ledgerTime("soon", "UTC")).toBeNull();
});

test("byte ranges become ranges of the string", () => {
	const text = "aé€😀z";
	expect([0, 1, 3, 6, 10, 11, 99].map((byte) => text.slice(indexOfByte(text, byte)))).toEqual([
		text,
		"é€😀z",
		"€😀z",
		"😀z",
		"z",
		"",
		"",
	]);
	const range = rangeOfBytes(text, "3", "10");
	expect(range && text.slice(range.start, range.end)).toBe("€😀");
	for (const [from, to] of [
		["3", "3"],
		["x", "4"],
		["-1", "4"],
		[null, "4"],
	] as const)
		expect(rangeOfBytes(text, from, to)).toBeNull();
});

test("quotes and words are found, and a text falls apart without loss", () => {
	expect(rangesOfQuote("ab ab", "ab")).toEqual([
		{ start: 0, end: 2 },
		{ start: 3, end: 5 },
	]);
	expect(rangesOfQuote("ab", "")).toEqual([]);
	expect(queryWords('refund "the fix" c++')).toEqual(["refund", "the fix", "c"]);
	const text = "Refund the refunds: REFUND.";
	const ranges = rangesOfWords(text, queryWords("refund ("));
	expect(ranges.map(({ start, end }) => text.slice(start, end))).toEqual(["Refund", "REFUND"]);
	const pieces = piecesOf(text, ranges);
	expect(pieces.map((piece) => piece.text).join("")).toBe(text);
	expect(pieces.filter(({ isMarked }) => isMarked)).toHaveLength(2);
});

test("a window of a long text holds the place and never cuts a character", () => {
	const text = "😀".repeat(1000);
	for (const place of [0, 7, 999, 2000]) {
		const { start, end } = windowAround(text, place, 101);
		expect(start).toBeLessThanOrEqual(place);
		expect(end).toBeGreaterThanOrEqual(Math.min(place, text.length));
		expect(text.slice(start, end)).not.toMatch(/\p{Cs}/u);
	}
});

test("where many texts stand together, a long one and one of many lines are cut", () => {
	expect(headLength("short", 100, 5)).toBe(100);
	expect(headLength("a\nb\nc\nd", 100, 2)).toBe(3);
	expect(headLength("a".repeat(200), 100, 2)).toBe(100);
});

test("a new ledger's people are read line by line, and what is empty is left out", () => {
	const people = "coder  Ann from the shop\n\n reviewer \n";
	expect(ledgerBody({ ...EMPTY_LEDGER, name: "w", people })).toEqual({
		world_id: "w",
		profile: "WORKSPACE",
		persons: [{ person_id: "coder", display_label: "Ann from the shop" }, { person_id: "reviewer" }],
	});
	expect([nameFault(""), nameFault("a b"), nameFault("a.b")].map((fault) => fault === null)).toEqual([
		false,
		false,
		true,
	]);
	const before = { ...LEDGER, timezone: "UTC" } as Ledger;
	expect(changedSettings(before, before)).toEqual({});
	expect(changedSettings(before, { ...before, timezone: "Europe/Berlin" })).toEqual({ timezone: "Europe/Berlin" });
});

test("an emptied field of a person is said, because what is left out stays", () => {
	const fields = { id: "CODER", label: " ", aliases: "Cody,, the coder ", identity: "", isHuman: false };
	expect(personBody(fields)).toEqual({
		person_id: "CODER",
		display_label: "CODER",
		aliases: ["Cody", "the coder"],
		identity: null,
		human: false,
	});
});

test("only the operator's envelope has words, and a person's entry names its readers", () => {
	expect(operatorEnvelope("r", "Go", { pause: true })).toMatchObject({
		operator: { operator_id: OPERATOR_ID, input_text: "Go" },
		declared_overrides: { pause_time: true, time: { declared_world_time: null } },
	});
	expect(operatorEnvelope("r", "Go").declared_overrides).toBeNull();
	const beat = personBeat("r", "CODER", " x\n", ["PLANNER"]);
	expect(beat.envelope.operator.input_text).toBe("");
	expect(beat.bundle.entries[0]).toMatchObject({
		text: " x\n",
		visibility: { scope: "PRIVATE", visible_to: ["PLANNER"] },
	});
	expect(personBeat("r", "CODER", "x", null).bundle.entries[0]?.visibility.scope).toBe("PUBLIC");
});

test("a refusal has code, path and words", () => {
	expect(readRefusal("TEXT_EMPTY: entries[0].text")).toMatchObject({ code: "TEXT_EMPTY", path: "entries[0].text" });
	expect(readRefusal("SOMETHING_NEW: x")).toMatchObject({ code: "SOMETHING_NEW", words: "The ledger refused it." });
	expect(readRefusal("odd")).toMatchObject({ code: "odd", path: "" });
});

test("connect lines are those of the command line", () => {
	const at = { server: "http://127.0.0.1:9010", ledger: "a.b", person: "ANN", token: "tkp.w.0" };
	expect(connectLine("claude", at)).toBe(
		'claude mcp add --transport http turnkeep-a-b-ANN http://127.0.0.1:9010/mcp --header "Authorization: Bearer tkp.w.0"',
	);
	expect(connectLine("codex", at)).toBe(
		"codex mcp add turnkeep-a-b-ANN --env TURNKEEP_TOKEN=tkp.w.0 --env TURNKEEP_SERVER=http://127.0.0.1:9010 -- turnkeep mcp",
	);
});

const view = (id: string) => ({ entry_id: id, created_at_world: "2026-11-18T09:00:00Z", channel: "USER", text: id });
const page = (...ids: string[]) =>
	readPage(
		{
			request_id: "",
			debug: { wrote: false },
			stream: { cursor_after: ids.at(-1) ?? null, entries: ids.map(view) },
		} as never,
		label,
	);
const EMPTY: LedgerStream = { lines: [], cursor: null, pocket: null, earlierThan: null, isCut: false };

test("pages join without a gap or a repeat", () => {
	const held = appendPage(appendPage(EMPTY, page("a", "b")), page("b", "c"));
	expect(held.lines.map(({ id }) => id)).toEqual(["a", "b", "c"]);
	expect(held.cursor).toBe("c");
	const same = appendPage(held, page());
	expect(same.cursor).toBe("c");
	expect(same.lines).toBe(held.lines);
	const more = prependLines(held, page("z", "a").lines, null);
	expect(more.lines.map(({ id }) => id)).toEqual(["z", "a", "b", "c"]);
});

test("an audit names authors by their labels, and people only", () => {
	const entry = {
		entry_id: "e",
		created_at_world: "2026-11-18T09:00:00Z",
		author: { author_id: "PLANNER", author_class: "PERSON" },
		visibility: { scope: "PRIVATE", visible_to: ["CODER"] },
		channel: "PEOPLE",
		text: "x",
		request_id: "r",
	};
	const { lines } = readPage({ stream: { cursor_after: "1", entries: [entry] } }, label);
	expect(lines[0]).toMatchObject({ label: "Planner", author: "PLANNER" });
	expect(justBefore("2026-11-18T09:00:00Z")).toBe("2026-11-18T08:59:59.999Z");
});

test("the joined excerpts of a capsule come apart again", () => {
	const excerpts = ["a\nb", "", "é€😀", "z"];
	const bytes = (text: string) => new TextEncoder().encode(text).length;
	const ranges = excerpts.map((text, at) => ({ start: at, end: at + bytes(text) }));
	expect(splitExcerpts(excerpts.join("\n"), ranges)).toEqual(excerpts);
});

test("a search is what its URL says, with whole times", () => {
	const search = readLedgerSearch("?q=a+b&by=CODER&from=2026-11-18T09:00");
	expect(isSearch(search)).toBe(true);
	expect(searchTool(search)).toEqual({
		name: "LEDGER_SEARCH",
		query_text: "a b",
		constraints: { limit: 50, person_id: "CODER", time_window: { from: "2026-11-18T09:00:00", to: null } },
	});
	expect(isSearch(readLedgerSearch("?q=+&as=CODER"))).toBe(false);
});
