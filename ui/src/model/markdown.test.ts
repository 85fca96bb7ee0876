import { describe, expect, test } from "vitest";
import { type Block, type Inline, parseInline, parseMarkdown } from "./markdown";

/** A short notation of words: `**a**` becomes `<strong>a</strong>`. */
function words(inline: readonly Inline[]): string {
	return inline.map(wordText).join("");
}

function wordText(word: Inline): string {
	switch (word.kind) {
		case "text":
			return word.text;
		case "code":
			return `<code>${word.text}</code>`;
		case "link":
			return `<a ${word.href}>${words(word.words)}</a>`;
		case "image":
			return `<img ${word.src}>${word.alt}</img>`;
		case "strong":
		case "emphasis":
		case "struck":
			return `<${word.kind}>${words(word.words)}</${word.kind}>`;
	}
}

/** A tree as lines. */
function outline(blocks: readonly Block[]): string[] {
	return blocks.flatMap(blockLines);
}

function blockLines(block: Block): string[] {
	switch (block.kind) {
		case "heading":
			return [`h${block.level} ${words(block.words)}`];
		case "paragraph":
			return [`p ${words(block.words)}`];
		case "code":
			return [`code ${block.language}|${block.text}`];
		case "quote":
			return outline(block.blocks).map((line) => `> ${line}`);
		case "list":
			return block.items.flatMap((item, at) => {
				const mark = block.start === null ? "-" : `${block.start + at}.`;
				const task = item.isDone === null ? "" : item.isDone ? "[x] " : "[ ] ";
				return outline(item.blocks).map((line, number) => (number === 0 ? `${mark} ${task}${line}` : `  ${line}`));
			});
		case "table":
			return [block.head, ...block.rows].map((row) => `| ${row.map(words).join(" | ")} |`);
		case "rule":
			return ["---"];
	}
}

describe("blocks", () => {
	test("headings, paragraphs and rules", () => {
		expect(outline(parseMarkdown("# One #\ntext\nmore\n\n***\n### Three"))).toEqual([
			"h1 One",
			"p text\nmore",
			"---",
			"h3 Three",
		]);
	});

	test("code is taken as it is, also while its end has not come", () => {
		const text = "```ts\nconst a = `**b**`;\n\n# no heading\n```\nafter\n~~~\nopen";
		expect(outline(parseMarkdown(text))).toEqual([
			"code ts|const a = `**b**`;\n\n# no heading",
			"p after",
			"code |open",
		]);
	});

	test("lists nest, count and have tasks", () => {
		const text = "- one\n  - inner\n- [x] done\n- [ ] open\n\n3. three\n4. four\n   more";
		expect(outline(parseMarkdown(text))).toEqual([
			"- p one",
			"  - p inner",
			"- [x] p done",
			"- [ ] p open",
			"3. p three",
			"4. p four\nmore",
		]);
	});

	test("quotes hold blocks", () => {
		expect(outline(parseMarkdown("> # One\n> - two\nafter"))).toEqual(["> h1 One", "> - p two", "p after"]);
	});

	test("tables have cells, also with escaped bars", () => {
		expect(outline(parseMarkdown("| a | b |\n|---|:-:|\n| `c` | d \\| e |\nafter"))).toEqual([
			"| a | b |",
			"| <code>c</code> | d | e |",
			"p after",
		]);
	});

	test("endless nesting ends", () => {
		const deep = `${"> ".repeat(5000)}x`;
		expect(outline(parseMarkdown(deep))).toHaveLength(1);
		expect(parseMarkdown("- ".repeat(5000))).toHaveLength(1);
	});
});

describe("words", () => {
	test.each([
		[
			"**bold** and *soft* and ~~gone~~",
			"<strong>bold</strong> and <emphasis>soft</emphasis> and <struck>gone</struck>",
		],
		["a `code * b` c", "a <code>code * b</code> c"],
		["snake_case_name stays", "snake_case_name stays"],
		["2 * 3 * 4", "2 * 3 * 4"],
		["**not closed", "**not closed"],
		["\\*no\\*", "*no*"],
		["[docs](https://x.example/a_(b))", "<a https://x.example/a_(b)>docs</a>"],
		["see https://x.example/a, please", "see <a https://x.example/a>https://x.example/a</a>, please"],
		["[**b**](https://x.example)", "<a https://x.example><strong>b</strong></a>"],
		["![cat](https://x.example/c.png)", "<img https://x.example/c.png>cat</img>"],
	])("%s", (text, shown) => {
		expect(words(parseInline(text))).toBe(shown);
	});

	test.each([
		"[x](javascript:alert(1))",
		"[x](JaVaScRiPt:alert)",
		"[x](data:text/html,hi)",
		"[x](file:///etc/passwd)",
		"[x](/runs)",
	])("%s stays text", (text) => {
		expect(words(parseInline(text))).toBe(text);
	});

	test("HTML is text", () => {
		const text = '<img src=x onerror="alert(1)"> <b>hi</b>';
		expect(words(parseInline(text))).toBe(text);
	});

	test("text of any kind is read in time", () => {
		for (const part of ["**", "*a", "[", "![", "`", "_a ", "~~", "<http://", "|"]) {
			const began = performance.now();
			parseMarkdown(part.repeat(4000));
			expect(performance.now() - began, part).toBeLessThan(2000);
		}
	});
});
