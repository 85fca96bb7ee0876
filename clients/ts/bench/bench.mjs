/**
 * What one connection carries, pipelined: durable appends of 1 KiB per second, and GET_LAST(64, payload) pages per
 * second. Needs a server that runs with --no-auth, or a token in TURNKEEP_TOKEN; prints one JSON line.
 *
 *   node bench/bench.mjs 127.0.0.1:9009 [seconds] [in flight]
 */

import { connect, contextId } from "../dist/node/index.js";

const PAYLOAD_BYTES = 1024;
const PAGE_TURNS = 64;

const [address = "127.0.0.1:9009", seconds = "2", inFlight = "64"] = process.argv.slice(2);
const token = process.env.TURNKEEP_TOKEN;
const client = await connect(address, token === undefined ? {} : { token });
const { contextId: id } = await client.createContext();
const type = { id: "bench.Turn", version: 1 };

/** A payload that is a map with one binary field, and different every time. */
function payload(number) {
	const bytes = Buffer.alloc(PAYLOAD_BYTES, number & 0xff);
	bytes.set([0x81, 0x01, 0xc5, (PAYLOAD_BYTES - 6) >> 8, (PAYLOAD_BYTES - 6) & 0xff, 0]);
	bytes.writeUInt32LE(number, 8);
	return bytes;
}

/** Keeps `inFlight` calls going for the given time; gives how many were answered per second. */
async function rate(ms, call) {
	let done = 0;
	const start = performance.now();
	const worker = async () => {
		while (performance.now() - start < ms) {
			await call(done);
			done += 1;
		}
	};
	await Promise.all(Array.from({ length: Number(inFlight) }, worker));
	return Math.round((done * 1000) / (performance.now() - start));
}

let number = 0;
const append = () => client.append({ contextId: contextId(id), type, payload: payload(number++) });
const readPage = async () => {
	const turns = await client.last(id, { limit: PAGE_TURNS });
	if (turns.length !== PAGE_TURNS) throw new Error(`a page of ${turns.length} turns`);
};

await rate(300, append);
const appends = await rate(Number(seconds) * 1000, append);
await rate(300, readPage);
const pages = await rate(Number(seconds) * 1000, readPage);
client.close();
console.log(
	JSON.stringify({
		client: "typescript",
		in_flight: Number(inFlight),
		appends_per_second: appends,
		pages_per_second: pages,
	}),
);
