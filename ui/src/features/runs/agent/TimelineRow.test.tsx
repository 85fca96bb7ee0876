import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, test, vi } from "vitest";
import { renderInWindow } from "../../../../test/render";
import { eventOf, newNode, uuid } from "../../../model/run-fixtures";
import { applyTranscript, emptyTranscript, type TranscriptRow } from "../../../model/transcript";
import { TimelineRow } from "./TimelineRow";

const NODE = uuid(1);

/** The last row that an event makes. */
function rowOf(...bodies: object[]): TranscriptRow {
	const events = bodies.map((body, at) => eventOf(at + 1, { nodeId: NODE, turnId: uuid(10), ...body }));
	const row = applyTranscript(emptyTranscript(NODE), events).rows.at(-1);
	if (row === undefined) throw new Error("no row");
	return row;
}

function show(row: TranscriptRow, isOpen = false) {
	const onToggle = vi.fn();
	renderInWindow(
		<TimelineRow
			runId={uuid(9)}
			row={row}
			nodes={{ [NODE]: newNode(NODE, "Me") }}
			isOpen={isOpen}
			onToggle={onToggle}
		/>,
	);
	return onToggle;
}

const tool = { id: uuid(40), name: "Bash", args: { command: "make test" } };
const proposed = { type: "tool.proposed", tool };
const completed = { type: "tool.completed", toolId: tool.id, durationMs: 1234 };

describe("a row of a timeline", () => {
	test("a tool is one line with result and time, and its output is shown when it is opened", async () => {
		const row = rowOf(proposed, { ...completed, result: { ok: true, output: "3 passed\nall of them" } });
		const onToggle = show(row);
		expect(screen.getByText("3 passed")).toBeDefined();
		expect(screen.getByText("1.2 s")).toBeDefined();
		expect(screen.queryByText(/all of them/)).toBeNull();
		await userEvent.click(screen.getByText("Bash"));
		expect(onToggle).toHaveBeenCalledWith(row.key, true);
	});

	test("an opened tool that failed shows the error and what was cut", () => {
		const result = { ok: false, output: "begin", truncated: true, artifactId: uuid(50) };
		show(rowOf(proposed, { ...completed, result, error: { message: "exit status 2" } }), true);
		expect(screen.getByText("failed")).toBeDefined();
		expect(screen.getByText("exit status 2")).toBeDefined();
		expect(screen.getByText(/only the beginning/)).toBeDefined();
	});

	test("markup in an answer is text", () => {
		show(rowOf({ type: "message.assistant.final", content: "<b>bold</b> \u202Ecba", status: "interrupted" }));
		expect(screen.getByText(/<b>bold<\/b>/)).toBeDefined();
		expect(screen.getByText("RLO")).toBeDefined();
		expect(screen.getByText(/it was interrupted/)).toBeDefined();
	});

	test("a failed turn says why, and how many inputs came back", () => {
		show(rowOf({ type: "turn.status", status: "turn.failed", detail: "timed out", requeued: [uuid(30)] }));
		expect(screen.getByText(/✕ The turn failed/).textContent).toContain("timed out");
		expect(screen.getByText(/1 input went back/)).toBeDefined();
	});

	test("a thought is folded behind its first line", () => {
		show(rowOf({ type: "message.assistant.thinking.final", content: "First line\nsecond line" }));
		expect(screen.getByText("First line")).toBeDefined();
		expect(screen.queryByText(/second line/)).toBeNull();
	});
});
