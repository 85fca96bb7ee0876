import { expect, test } from "vitest";
import { fittingFontSize, readScreen, withoutBidiControls } from "./terminal-screen";

test("a screen message is read, and nothing else", () => {
	expect(readScreen('{"type":"screen","cols":80,"rows":24,"repaint":true}')).toEqual({
		cols: 80,
		rows: 24,
		isRepaint: true,
	});
	expect(readScreen('{"type":"screen","cols":80,"rows":24,"repaint":false}')?.isRepaint).toBe(false);
	for (const other of ["", "null", "[]", '{"type":"other"}', '{"type":"screen","cols":1e9,"rows":24}']) {
		expect(readScreen(other)).toBeNull();
	}
});

test("letters shrink until the columns fit, and stay readable", () => {
	expect(fittingFontSize(1200, 80, 0.6)).toBe(14);
	expect(fittingFontSize(480, 80, 0.6)).toBe(10);
	expect(fittingFontSize(100, 200, 0.6)).toBe(6);
});

test("what would change the order of a line is left out", () => {
	expect(withoutBidiControls("a\u202eb\u2066c\u200fd")).toBe("abcd");
});
