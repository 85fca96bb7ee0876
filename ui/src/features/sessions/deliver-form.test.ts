import { expect, test } from "vitest";
import { deliverBody, EMPTY_DELIVERY, missingFrom } from "./deliver-form";

test("a delivery says what is missing", () => {
	expect(missingFrom(EMPTY_DELIVERY)).toBe("Choose the session that gets it");
	expect(missingFrom({ ...EMPTY_DELIVERY, session: "ab" })).toBeNull();
	expect(missingFrom({ ...EMPTY_DELIVERY, sink: "node", run: "r" })).toBe("Choose the agent");
	expect(missingFrom({ ...EMPTY_DELIVERY, sink: "file", path: "notes.txt" })).toContain("whole path");
	expect(missingFrom({ ...EMPTY_DELIVERY, sink: "clipboard" })).toBeNull();
});

test("the request holds only what the sink takes", () => {
	const form = { ...EMPTY_DELIVERY, session: "ab", run: "r", node: "n", path: "/tmp/x", isForced: true };
	expect(deliverBody(form, "3")).toEqual({
		sink: "inject",
		seq: "3",
		session: "ab",
		raw: false,
		bracketed: true,
		force: true,
	});
	expect(deliverBody({ ...form, sink: "node", isRaw: true }, null)).toEqual({
		sink: "node",
		run: "r",
		node: "n",
		raw: false,
		bracketed: false,
		force: false,
	});
	expect(deliverBody({ ...form, sink: "file", isRaw: true }, null)).toEqual({
		sink: "file",
		path: "/tmp/x",
		raw: true,
		bracketed: false,
		force: false,
	});
});
