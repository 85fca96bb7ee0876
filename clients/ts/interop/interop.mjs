/**
 * The TypeScript side of the interoperability matrix; what it must do is in clients/interop/README.md. It runs on the
 * built package.
 */

import { readFileSync } from "node:fs";
import { GatewayClient, contextId as gatewayContextId } from "../dist/http/index.js";
import { connect, contextId, hashOf, payloadOf } from "../dist/node/index.js";
import { decodeRecord, encodeRecord, reencode } from "./record.mjs";

/** Payloads up to this are reported whole. */
const SHOWN_BYTES_MAX = 4096;
const TYPE = { id: "interop.Record", version: 1 };

const { TURNKEEP_ADDR: address, TURNKEEP_HTTP: http, TURNKEEP_TOKEN: token } = process.env;

/** Runs something with a client, which is closed in any case. */
async function withClient(use) {
	const client = await connect(address, { token, verifyReads: true });
	try {
		return await use(client);
	} finally {
		client.close();
	}
}

function write(file) {
	return withClient(async (client) => {
		const { contextId } = await client.createContext();
		for (const { name, write } of JSON.parse(readFileSync(file, "utf8"))) {
			await client.append({ contextId, type: TYPE, payload: payloadToWrite(write), key: name });
		}
		return { context_id: String(contextId) };
	});
}

function payloadToWrite({ record, bytes, noise = 0, zeros = 0 }) {
	if (record !== undefined) return encodeRecord(record);
	const head = Buffer.from(bytes, "hex");
	const tail = Buffer.alloc(zeros + noise);
	let state = 1;
	for (let at = zeros; at < tail.length; at += 1) {
		state = (Math.imul(1664525, state) + 1013904223) >>> 0;
		tail[at] = state >>> 24;
	}
	return Buffer.concat([head, tail]);
}

function read(id) {
	return withClient(async (client) => {
		const plain = client.history(id);
		const turns = [];
		for await (const stored of client.history(id, { stored: true })) {
			const { value: again } = await plain.next();
			turns.push(report(stored, again));
		}
		return turns.reverse();
	});
}

/** What the driver compares of one turn that was read in both forms. */
function report(stored, plain) {
	const payload = Buffer.from(payloadOf(stored));
	if (plain.compression !== "none" || !payload.equals(plain.payload)) {
		throw new Error(`turn ${stored.id} differs between its two forms`);
	}
	const isShown = payload.length <= SHOWN_BYTES_MAX;
	const isDecoded = isShown && payload.length > 0 && stored.type.id === TYPE.id;
	return {
		type_id: stored.type.id,
		type_version: stored.type.version,
		encoding: stored.encoding,
		depth: stored.depth,
		uncompressed_len: stored.uncompressedLength,
		content_hash: stored.hash,
		stored_compression: stored.compression === "zstd" ? 1 : 0,
		blake3: hashOf(payload),
		payload: isShown ? payload.toString("hex") : null,
		record: isDecoded ? decodeRecord(payload) : null,
		reencoded: isDecoded ? reencode(payload).toString("hex") : null,
	};
}

async function typed(id) {
	const gateway = new GatewayClient({ baseUrl: `http://${http}`, token });
	const turns = [];
	for await (const turn of gateway.history(id)) turns.push(turn.data);
	return turns.reverse();
}

function run([command, argument, form]) {
	if (command === "write" && form === "none") return write(argument);
	if (command === "read") return read(contextId(argument));
	if (command === "typed") return typed(gatewayContextId(argument));
	throw new Error("usage: interop write FILE none, interop read CONTEXT, or interop typed CONTEXT");
}

console.log(JSON.stringify(await run(process.argv.slice(2))));
