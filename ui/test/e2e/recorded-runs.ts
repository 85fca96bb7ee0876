/**
 * The recorded runs of `testdata/runs`: `NAME.jsonl` has the records that a server wrote, `NAME.api.json` what the API says
 * about them. The fold of the UI is tested with the second, which `UPDATE=1` writes anew.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RunEvent } from "../../src/model/run.ts";
import type { Schema } from "../../src/model/schema.ts";
import type { Harness } from "./harness.ts";

const FOLDER = new URL("../../../testdata/runs/", import.meta.url);
const RUN = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";
/** A server writes the events of a run as turns of this type. */
const EVENT_TYPE = { type_id: "turnkeep.run.Event", type_version: 1 };

/** What the API says about a run. */
export interface RunOfApi {
	readonly events: readonly RunEvent[];
	readonly snapshot: Schema<"RunView">;
	/** Open approvals and questions. */
	readonly approvals: readonly Schema<"ApprovalView">[];
}

/** A line of a recording: the bytes of a turn, as hex. */
interface RecordLine {
	readonly record: string;
}

/** The file with what the API says. */
export function apiFile(name: string): string {
	return fileURLToPath(new URL(`${name}.api.json`, FOLDER));
}

/** Writes the records into the store of a server, which finds the run when it starts again. */
export async function playRecords(harness: Harness, name: string): Promise<string> {
	const lines = readFileSync(new URL(`${name}.jsonl`, FOLDER), "utf8")
		.trim()
		.split("\n");
	const labels = { "turnkeep.run": RUN };
	const { context_id } = await harness.api<{ context_id: string }>("/v1/contexts", { body: { labels } });
	for (const line of lines) {
		const { record } = JSON.parse(line) as RecordLine;
		const payload_b64 = Buffer.from(record, "hex").toString("base64");
		await harness.api(`/v1/contexts/${context_id}/append`, { body: { ...EVENT_TYPE, payload_b64 } });
	}
	await harness.stopServer();
	await harness.startServer();
	return RUN;
}

/** All events of a run, and what they led to. */
export async function readRun(harness: Harness, run: string): Promise<RunOfApi> {
	const events: RunEvent[] = [];
	for (let after: number | null = 0; after !== null; ) {
		const page: Schema<"EventPage"> = await harness.api(`/api/runs/${run}/events?limit=200&after=${after}`);
		events.push(...page.events);
		after = page.page.hasMore ? (page.page.nextCursor ?? null) : null;
	}
	const { run: snapshot } = await harness.api<{ run: Schema<"RunView"> }>(`/api/runs/${run}`);
	const open = await harness.api<Schema<"ApprovalList">>(`/api/approvals?runId=${run}`);
	return { events, snapshot, approvals: open.approvals.map(({ approval }) => approval) };
}
