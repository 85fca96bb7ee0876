import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { endOf } from "../../model/audit-trail";
import { auditQuery, loadEarlier } from "./audit-query";

afterEach(() => void vi.unstubAllGlobals());

/** A server with an audit of so many lines, which may grow. Returns the cursors and limits that are asked for. */
function serveAudit(audit: { lines: number }): string[] {
	const asked: string[] = [];
	vi.stubGlobal("fetch", async (request: Request) => {
		const query = new URL(request.url).searchParams;
		const [cursor, limit] = [Number(query.get("cursor")), Number(query.get("limit"))];
		asked.push(`${cursor}+${limit}`);
		const numbers = Array.from({ length: Math.max(0, Math.min(limit, audit.lines - cursor)) }, (_, at) => cursor + at);
		const lines = numbers.map((number) => ({ at: null, principal: "owner", what: `${number}`, details: {} }));
		const end = cursor + lines.length;
		return Response.json({ lines, next_cursor: end < audit.lines ? String(end) : null });
	});
	return asked;
}

async function held(client: QueryClient): Promise<{ first: number; end: number; isWhole: boolean }> {
	const trail = await client.fetchQuery({ ...auditQuery("shop"), staleTime: 0, retry: false });
	const isWhole = trail.lines.every(({ what }, at) => what === String(trail.first + at));
	return { first: trail.first, end: endOf(trail), isWhole };
}

test("a short audit is held whole, and only what is new is read again", async () => {
	const audit = { lines: 3 };
	const asked = serveAudit(audit);
	const client = new QueryClient();
	expect(await held(client)).toEqual({ first: 0, end: 3, isWhole: true });
	audit.lines = 5;
	expect(await held(client)).toEqual({ first: 0, end: 5, isWhole: true });
	expect(asked).toEqual(["0+500", "3+500"]);
});

test("a long audit is held from its end, and earlier lines come on request", async () => {
	const audit = { lines: 5_001 };
	serveAudit(audit);
	const client = new QueryClient();
	expect(await held(client)).toEqual({ first: 4_500, end: 5_001, isWhole: true });
	await loadEarlier(client, "shop");
	expect(await held(client)).toEqual({ first: 4_000, end: 5_001, isWhole: true });
	for (let at = 0; at < 8; at += 1) await loadEarlier(client, "shop");
	expect(await held(client)).toEqual({ first: 0, end: 5_001, isWhole: true });
});

test("after a long absence the audit is held from its end again", async () => {
	const audit = { lines: 10 };
	serveAudit(audit);
	const client = new QueryClient();
	await held(client);
	audit.lines = 4_000;
	expect(await held(client)).toEqual({ first: 3_000, end: 4_000, isWhole: true });
});

test("earlier lines that come while new ones are read are kept", async () => {
	const audit = { lines: 1_500 };
	serveAudit(audit);
	const client = new QueryClient();
	expect(await held(client)).toMatchObject({ first: 500 });
	audit.lines = 1_502;
	const [trail] = await Promise.all([held(client), loadEarlier(client, "shop")]);
	expect(trail).toEqual({ first: 0, end: 1_502, isWhole: true });
});
