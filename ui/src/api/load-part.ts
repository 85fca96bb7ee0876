/**
 * Loads a part of the UI that has a file of its own, and finds out why when that fails.
 *
 * The files are for the owner only and change their names with every release, so a failure may mean three things: the
 * window is signed out, the server is away, or it was upgraded. Only the last one asks for a reload.
 */

import { connectionStore, notePartMissing } from "./connection";
import { NoAnswerError } from "./errors";
import { request } from "./http";

/** A part that is waited for is asked for again so often, also if nobody says that the server is back. */
const ASK_EVERY_MS = 2_000;

/** The part, as soon as the server can give it. */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
	for (;;) {
		try {
			return await load();
		} catch (error) {
			if (!(await isServerAway())) {
				if (connectionStore.getState().connection.state !== "signed-out") notePartMissing();
				throw error;
			}
			await connectedOrSoon();
		}
	}
}

/** Asks something small. An answer 401 signs the window out. */
async function isServerAway(): Promise<boolean> {
	try {
		await request("/v1/stats");
		return false;
	} catch (error) {
		return error instanceof NoAnswerError;
	}
}

/** Resolves when the notice stream opens again, or after a while: it may not have noticed the loss. */
function connectedOrSoon(): Promise<void> {
	return new Promise((resolve) => {
		const done = () => {
			clearTimeout(timer);
			unsubscribe();
			resolve();
		};
		const timer = setTimeout(done, ASK_EVERY_MS);
		const unsubscribe = connectionStore.subscribe(({ connection }) => {
			if (connection.state === "connected") done();
		});
	});
}
