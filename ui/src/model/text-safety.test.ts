import { describe, expect, test } from "vitest";
import { firstLine, hasHiddenCharacters, safePieces, safeText } from "./text-safety";

describe("untrusted text", () => {
	test("ordinary text stays as it is", () => {
		for (const text of ["", "plain", "tab\tand\nline", "Grüße, привет, 你好, שלום", "👩‍👩‍👧 ❤️ 1️⃣ →"]) {
			expect(safeText(text, "show")).toBe(text);
			expect(hasHiddenCharacters(text)).toBe(false);
		}
	});

	test("a bidi override is a mark", () => {
		expect(safePieces("user\u202Egpj.exe")).toEqual([
			{ kind: "text", text: "user" },
			{ kind: "mark", name: "RLO", codePoint: 0x202e },
			{ kind: "text", text: "gpj.exe" },
		]);
	});

	test.each([
		["a\u200bb", "a⟨ZWSP⟩b"],
		["a\u200db", "a⟨ZWJ⟩b"],
		["a\ufe0fb", "a⟨U+FE0F⟩b"],
		["a\u00adb", "a⟨SHY⟩b"],
		["a\u3164b", "a⟨U+3164⟩b"],
		["\ufeffa", "⟨BOM⟩a"],
		["a\u{e0041}b", "a⟨U+E0041⟩b"],
		["a\u2066b\u2069", "a⟨LRI⟩b⟨PDI⟩"],
		["nul\u0000", "nul⟨NUL⟩"],
		["one\rtwo", "one⟨CR⟩two"],
		["lone \ud800", "lone ⟨U+D800⟩"],
	])("%j shows what hides in it", (text, shown) => {
		expect(safeText(text)).toBe(shown);
	});

	test.each([
		["\u001b[31mred\u001b[0m", "⟨ESC[31m⟩red⟨ESC[0m⟩", "red"],
		["\u001b]8;;http://x\u0007link\u001b]8;;\u0007", "⟨ESC]8;;http://xBEL⟩link⟨ESC]8;;BEL⟩", "link"],
		["\u001bPq#0\u001b\\after", "⟨ESCPq#0ESC\\⟩after", "after"],
		["\u001b(Bx", "⟨ESC(B⟩x", "x"],
		["\u009b2Jx", "⟨U+009B2J⟩x", "x"],
	])("escapes in %j are shown or stripped", (text, shown, stripped) => {
		expect(safeText(text, "show")).toBe(shown);
		expect(safeText(text, "strip")).toBe(stripped);
	});

	test("an escape that does not end is a mark and hides nothing behind it", () => {
		expect(safeText("\u001b]0;title without an end")).toContain("title without an end");
	});

	test("a line break of Windows is a line break", () => {
		expect(safeText("a\r\nb")).toBe("a\nb");
	});

	test("the first line is cut between characters", () => {
		expect(firstLine("\n  hello\nworld")).toBe("hello");
		expect(firstLine("😀😀😀", 2)).toBe("😀…");
	});
});
