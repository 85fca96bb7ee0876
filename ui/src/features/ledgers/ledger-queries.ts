/** What the screens of a ledger fetch, each under a key that the notice `world.changed` makes stale. */

import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { queryClient } from "../../api/query";
import { type Eyes, eyesKey, eyesQuery, type Ledger, labelOf, viewerOf } from "../../model/ledger";
import {
	appendPage,
	justBefore,
	type LedgerStream,
	prependLines,
	readPage,
	type StreamPage,
} from "../../model/ledger-stream";
import type { Schema } from "../../model/schema";

/** A ledger's settings, people and clock. */
export const ledgerQuery = (world: string) =>
	queryOptions({
		queryKey: keys.world(world, "settings"),
		queryFn: ({ signal }): Promise<Ledger> =>
			answer(api.GET("/v1/worlds/{world}", { params: { path: { world } }, signal })),
	});

/** The newest entries that a reader may see. For anybody but oneself it is an audit read. */
export const viewQuery = (
	world: string,
	viewer: string,
	query: { readonly as?: string; readonly audit?: string; readonly as_of?: string; readonly limit: number },
) =>
	queryOptions({
		queryKey: keys.world(world, "view", viewer, JSON.stringify(query)),
		queryFn: ({ signal }) => fetchView(world, viewer, query, signal),
	});

async function fetchView(
	world: string,
	viewer: string,
	query: { readonly as?: string; readonly audit?: string; readonly as_of?: string; readonly limit: number },
	signal: AbortSignal,
): Promise<Schema<"SeenView">> {
	const path = { world, person: viewer };
	const seen = await answer(api.GET("/v1/worlds/{world}/views/{person}", { params: { path, query }, signal }));
	if ("entries" in seen) return seen;
	throw new Error("the server answered with a difference of two views");
}

/** A ledger with more visible entries than this is read from its end, and earlier entries on request. */
const HELD_FIRST = 300;
/** So many pages are read in one go, at most 500 entries each; the rest on request. */
const PAGES_MAX = 20;

const NOTHING: LedgerStream = { lines: [], cursor: null, pocket: null, earlierThan: null, isCut: false };

/**
 * The stream, which grows: a refetch only reads what came after the entries that are held, because entries never change.
 */
export const streamQuery = (world: string, eyes: Eyes) => {
	const queryKey = keys.world(world, "stream", eyesKey(eyes));
	return queryOptions({
		queryKey,
		queryFn: async ({ signal }): Promise<LedgerStream> => {
			const held = queryClient.getQueryData<LedgerStream>(queryKey) ?? (await beginStream(world, eyes, signal));
			return readOn(world, eyes, held, signal);
		},
		// Entries of a large ledger need not be compared with themselves.
		structuralSharing: false,
	});
};

/** Where to begin so that the newest entries come first to the screen. */
async function beginStream(world: string, eyes: Eyes, signal: AbortSignal): Promise<LedgerStream> {
	// An audit has no view of its own, so it is read from the beginning.
	if (eyes.kind === "audit") return NOTHING;
	const query = { ...eyesQuery(eyes), limit: HELD_FIRST };
	const newest = await fetchView(world, viewerOf(eyes), query, signal);
	const first = newest.entries[0]?.created_at_world;
	return newest.complete || first == null ? NOTHING : cursorBefore(world, eyes, first, signal);
}

/** An empty stream that begins with the first entry of this time. */
async function cursorBefore(world: string, eyes: Eyes, time: string, signal: AbortSignal): Promise<LedgerStream> {
	const query = { ...eyesQuery(eyes), limit: 1, as_of: justBefore(time) };
	const { cursor = null, count } = await fetchView(world, viewerOf(eyes), query, signal);
	return { ...NOTHING, cursor, earlierThan: count === 0 ? null : time };
}

async function readOn(world: string, eyes: Eyes, held: LedgerStream, signal: AbortSignal): Promise<LedgerStream> {
	let stream = held;
	for (let at = 0; at < PAGES_MAX; at += 1) {
		const page = await fetchPage(world, eyes, stream.cursor, signal);
		stream = { ...appendPage(stream, page), isCut: false };
		if (page.lines.length === 0) return stream;
	}
	return { ...stream, isCut: true };
}

async function fetchPage(world: string, eyes: Eyes, cursor: string | null, signal: AbortSignal): Promise<StreamPage> {
	const query = { ...eyesQuery(eyes), audience: "1", ...(cursor === null ? {} : { cursor }) };
	const found = await answer(api.GET("/v1/worlds/{world}/stream", { params: { path: { world }, query }, signal }));
	const ledger = eyes.kind === "audit" ? await queryClient.fetchQuery(ledgerQuery(world)) : undefined;
	return readPage(found, (id) => labelOf(ledger, id));
}

/** Fetches entries before those that are held, and puts them into the cache. */
export async function loadEarlier(world: string, eyes: Eyes): Promise<void> {
	const { queryKey } = streamQuery(world, eyes);
	const held = queryClient.getQueryData<LedgerStream>(queryKey);
	if (held?.earlierThan == null) return;
	const { signal } = new AbortController();
	const query = { ...eyesQuery(eyes), limit: HELD_FIRST, as_of: justBefore(held.earlierThan) };
	const before = await fetchView(world, viewerOf(eyes), query, signal);
	const first = before.entries[0]?.created_at_world ?? null;
	const begun = before.complete || first === null ? NOTHING : await cursorBefore(world, eyes, first, signal);
	let { cursor } = begun;
	const lines: StreamPage["lines"][number][] = [];
	while (lines.length < before.entries.length) {
		const page = await fetchPage(world, eyes, cursor, signal);
		if (page.lines.length === 0) break;
		lines.push(...page.lines);
		cursor = page.cursor;
	}
	queryClient.setQueryData<LedgerStream>(queryKey, (now) =>
		now === undefined ? now : prependLines(now, lines, begun.earlierThan),
	);
}

/** One entry, if these eyes may see it. */
export const entryQuery = (world: string, entry: string, eyes: Eyes) =>
	queryOptions({
		queryKey: keys.world(world, "entry", entry, eyesKey(eyes)),
		queryFn: ({ signal }) => {
			const params = { path: { world, entry }, query: eyesQuery(eyes) };
			return answer(api.GET("/v1/worlds/{world}/entries/{entry}", { params, signal }));
		},
	});

/** Asks a tool that finds entries. It reads only, although it is a POST. */
export async function retrieve(
	world: string,
	eyes: Eyes,
	tool: Schema<"ToolCall">,
	signal: AbortSignal,
): Promise<Schema<"RetrievalResultPack">> {
	const pack = await askTool(world, eyes, tool, signal);
	if ("results" in pack) return pack;
	throw new Error("the server answered with another kind of pack");
}

/** The current scene of a reader. */
export async function fetchScene(world: string, eyes: Eyes, signal: AbortSignal): Promise<Schema<"SceneAnchorPack">> {
	const pack = await askTool(world, eyes, { name: "SCENE_PACK_BUILD", query_text: "" }, signal);
	if ("scene_anchor_id" in pack) return pack;
	throw new Error("the server answered with another kind of pack");
}

function askTool(world: string, eyes: Eyes, tool: Schema<"ToolCall">, signal: AbortSignal) {
	const viewer = viewerOf(eyes);
	const body = {
		tool_request_id: "ui",
		request_id: "ui",
		requested_by: { engine: "turnkeep-ui", actor: viewer, knowledge_view: viewer },
		tool,
	};
	const query = eyes.kind === "person" ? { as: eyes.person } : {};
	return answer(api.POST("/v1/worlds/{world}/tools", { params: { path: { world }, query }, body, signal }));
}

/** What there is to read about a person. `audit` reads with the person's own eyes. */
export const capsuleQuery = (world: string, person: string, eyes: Eyes) =>
	queryOptions({
		queryKey: keys.world(world, "capsule", person, eyesKey(eyes)),
		queryFn: ({ signal }) => {
			const params = { path: { world, person }, query: eyesQuery(eyes) };
			return answer(api.GET("/v1/worlds/{world}/persons/{person}/capsule", { params, signal }));
		},
	});
