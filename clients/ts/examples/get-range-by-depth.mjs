// GET_RANGE_BY_DEPTH: turns by their depth on the way to the head.
import { connect, encodeTagged } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
for (const text of ["one", "two", "three"])
	await client.append({ contextId, type, payload: encodeTagged({ 1: text }) });
for (const turn of await client.range(contextId, 1, { limit: 2, payload: false })) {
	console.log(`depth ${turn.depth}: turn ${turn.id}, ${turn.uncompressedLength} bytes`);
}
client.close();
