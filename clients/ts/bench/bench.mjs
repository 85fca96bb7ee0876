/**
 * How much one connection carries with this client, to compare it with the clients in other languages.
 *
 * Durable appends of 1 KiB, all different, 512 in flight; then GET_LAST of 64 turns with their payloads, 16 in flight;
 * half a second to warm up and three to count, each. The server is at TURNKEEP_ADDR, its token in TURNKEEP_TOKEN.
 * Prints one line of JSON.
 */

import { connect } from "../dist/node/index.js";

const PAYLOAD_BYTES = 1024;
const APPENDS_IN_FLIGHT = 512;
const READS_IN_FLIGHT = 16;
const TURNS_PER_READ = 64;
const WARM_UP_MS = 500;
const MEASURED_MS = 3000;

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "bench.Turn", version: 1 };

/** A payload that is a map with one binary field, and different every time. */
function payload(number) {
	const bytes = Buffer.allocUnsafe(PAYLOAD_BYTES).fill(number & 0xff);
	bytes.set([0x81, 0x01, 0xc5, (PAYLOAD_BYTES - 5) >> 8, (PAYLOAD_BYTES - 5) & 0xff]);
	bytes.writeUInt32LE(number, 8);
	return bytes;
}

/** Keeps so many calls under way; gives how many were answered per second after the warm-up. */
async function rate(inFlight, call) {
	const start = performance.now() + WARM_UP_MS;
	const end = start + MEASURED_MS;
	let answered = 0;
	const caller = async () => {
		for (let now = performance.now(); now < end; now = performance.now()) {
			await call();
			if (now >= start) answered += 1;
		}
	};
	await Promise.all(Array.from({ length: inFlight }, caller));
	return Math.round((answered * 1000) / (performance.now() - start));
}

let number = 0;
const appends = await rate(APPENDS_IN_FLIGHT, () => {
	number += 1;
	return client.append({ contextId, type, payload: payload(number) });
});
const pages = await rate(READS_IN_FLIGHT, async () => {
	const turns = await client.last(contextId, { limit: TURNS_PER_READ });
	if (turns.length !== TURNS_PER_READ) throw new Error(`a page of ${turns.length} turns`);
});
client.close();
console.log(JSON.stringify({ client: "typescript", appends_per_second: appends, pages_per_second: pages }));
