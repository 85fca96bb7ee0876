import { describe, expect, test } from "vitest";
import { closedWords, inUrgency, type Session, sessionsCalled, sessionWords, signalWords, turnFlags } from "./session";

const session = (fields: Partial<Session>): Session => ({
	session: "ab".repeat(16),
	pid: 1,
	unanswered: 0,
	has_turn: false,
	turns: 0,
	connected: true,
	shared: false,
	...fields,
});

describe("sessionWords", () => {
	test("says a state with its reason and since when", () => {
		const since = "2026-11-18T17:00:00Z";
		expect(sessionWords(session({ state: "blocked", since }))).toEqual({
			tone: "waiting",
			word: "blocked",
			reason: "shows a dialog and waits for your answer",
			since,
		});
	});

	test("an ended session is ended, whatever it did last", () => {
		expect(sessionWords(session({ state: "working", connected: false })).word).toBe("ended");
	});

	test("tells a program without a prompt from one whose prompt is not recognised", () => {
		expect(sessionWords(session({})).reason).toBe("no prompt was seen yet");
		expect(sessionWords(session({ unanswered: 2 })).reason).toBe("its prompt is not recognised");
	});

	test("shows a state of a newer server as it is", () => {
		expect(sessionWords(session({ state: "asleep" })).word).toBe("asleep");
	});
});

test("signals have words, and unknown ones are shown as they are", () => {
	expect(signalWords("title")).toBe("the window title");
	expect(signalWords("smoke")).toBe("smoke");
	expect(signalWords(undefined)).toBe("nothing yet");
});

test("a name means the session with this id, else this name, else this head of an id", () => {
	const [a, b, c] = [
		session({ session: "aa11", name: "aa22" }),
		session({ session: "aa22" }),
		session({ session: "bb", name: "review" }),
	];
	const all = [a, b, c];
	expect(sessionsCalled(all, "aa22")).toEqual([b]);
	expect(sessionsCalled(all, "review")).toEqual([c]);
	expect(sessionsCalled(all, "aa")).toEqual([a, b]);
	expect(sessionsCalled(all, "zz")).toEqual([]);
});

test("flags are said in words", () => {
	expect(turnFlags({ interrupted: true, truncated: false, incomplete: false, unprompted: true })).toEqual([
		"interrupted",
		"without a prompt",
	]);
});

test("what waits comes first and what ended last", () => {
	const sorted = inUrgency([
		session({ session: "e", connected: false }),
		session({ session: "r", state: "ready" }),
		session({ session: "w", state: "working" }),
		session({ session: "b", state: "blocked" }),
	]);
	expect(sorted.map(({ session: id }) => id).join("")).toBe("bwre");
});

test("each reason for a closed route has its own words", () => {
	expect(closedWords("no_broker").what).toContain("No broker");
	expect(closedWords("not_loopback").what).toContain("other machines");
	expect(closedWords(undefined).todo).toContain("turnkeep sessions");
});
