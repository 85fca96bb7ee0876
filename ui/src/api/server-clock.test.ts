import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteServerTime, serverNow } from "./server-clock";

const BROWSER = Date.parse("2026-11-18T15:00:00Z");

beforeEach(() => vi.useFakeTimers({ now: BROWSER }));
afterEach(() => {
	noteServerTime(new Date().toUTCString());
	vi.useRealTimers();
});

test.each([
	["an hour ahead", "Wed, 18 Nov 2026 16:00:00 GMT", 3_600_000],
	["an hour behind", "Wed, 18 Nov 2026 14:00:00 GMT", -3_600_000],
	["as near as a header can say", "Wed, 18 Nov 2026 14:59:58 GMT", 0],
])("a server whose clock is %s", (_, date, ahead) => {
	noteServerTime(date);
	expect(serverNow()).toBe(BROWSER + ahead);
});

test("an answer without a time changes nothing", () => {
	noteServerTime("Wed, 18 Nov 2026 16:00:00 GMT");
	noteServerTime(null);
	expect(serverNow()).toBe(BROWSER + 3_600_000);
});
