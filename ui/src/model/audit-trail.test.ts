import { describe, expect, it } from "vitest";
import type { AuditLine } from "./audit";
import { auditRows, countAuditKinds, endOf, findLastPage } from "./audit-trail";

const line = (at: string | null, what: string, details: object = {}, principal = "owner"): AuditLine => ({
	at,
	principal,
	what,
	request_id: null,
	details: details as AuditLine["details"],
});
const look = (at: string, person: string) => line(at, "acting-as", { person, method: "GET" });

describe("the rows of an audit", () => {
	const trail = {
		first: 7,
		lines: [
			line("2026-11-18T10:00:00Z", "configured"),
			look("2026-11-18T10:00:01Z", "ANN"),
			look("2026-11-18T10:00:02Z", "ANN"),
			look("2026-11-18T10:00:03Z", "BOB"),
			look("2026-11-18T10:02:00Z", "BOB"),
			line(null, "rejection", { reason: "TEXT_EMPTY" }, "person:ANN"),
			line(null, "rejection", { reason: "TEXT_EMPTY" }, "person:ANN"),
		],
	};
	const shape = (rows: ReturnType<typeof auditRows>) => rows.map(({ lines }) => lines.map(({ number }) => number));

	it("are newest first, and a look that left several lines is one row", () => {
		expect(shape(auditRows(trail, null))).toEqual([[13], [12], [11], [10], [9, 8], [7]]);
		expect(endOf(trail)).toBe(14);
	});

	it("of one kind leave the others out", () => {
		expect(shape(auditRows(trail, "looks"))).toEqual([[11], [10], [9, 8]]);
		expect(auditRows(trail, "tokens")).toEqual([]);
	});

	it("are counted by kind, line by line", () => {
		expect([...countAuditKinds(trail.lines)]).toEqual([
			["settings", 1],
			["looks", 4],
			["refusals", 2],
		]);
	});
});

describe("the last page", () => {
	it.each([0, 1, 2, 3, 7, 8, 9, 1_000])("is found where it is %i", async (last) => {
		expect(await findLastPage(async (page) => page <= last)).toBe(last);
	});

	it("takes few questions", async () => {
		const asked: number[] = [];
		await findLastPage(async (page) => {
			asked.push(page);
			return page <= 9;
		});
		expect(asked).toEqual([1, 2, 4, 8, 16, 12, 10, 9]);
	});
});
