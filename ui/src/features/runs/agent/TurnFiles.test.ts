import { expect, test } from "vitest";
import { revertWords } from "./TurnFiles";

test("a revert says what it restored, and what was so already", () => {
	expect(revertWords({ paths: ["a", "b"] })).toBe("Restored as before the turn: a, b");
	expect(revertWords({ paths: [], already: ["a"] })).toBe("Already as before the turn: a");
	expect(revertWords({ paths: ["b"], already: ["a"] })).toBe(
		"Restored as before the turn: b. Already as before the turn: a",
	);
});
