/** A context's whole history, newest first, read a page at a time. */

import { ProtocolError } from "../core/errors.js";
import type { Turn } from "../wire/turns.js";
import type { Client, ReadOptions } from "./client.js";
import type { ContextId } from "./ids.js";

const PAGE_TURNS = 256;

/**
 * Turns from the head back to the root. The first page fixes the path: appends meanwhile do not disturb it. Pages that
 * do not lead back are a `ProtocolError`.
 */
export async function* history(
	client: Client,
	contextId: ContextId,
	{ pageTurns = PAGE_TURNS, ...options }: ReadOptions & { readonly pageTurns?: number },
): AsyncGenerator<Turn, void, void> {
	let page = await client.last(contextId, { ...options, limit: pageTurns });
	for (;;) {
		for (let index = page.length - 1; index >= 0; index -= 1) yield page[index] as Turn;
		const oldest = page[0];
		if (oldest === undefined || oldest.parentId === null) return;
		page = await client.before(contextId, oldest.id, { ...options, limit: pageTurns });
		if (page[0] !== undefined && page[0].id >= oldest.id) {
			throw new ProtocolError("bad_value", `turn ${page[0].id} is no ancestor of turn ${oldest.id}`);
		}
	}
}
