// GET_LAST: the turns nearest to the head, oldest first, decoded by tag.
import { connect, encodeTagged, TaggedMap } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
for (const text of ["one", "two", "three"])
	await client.append({ contextId, type, payload: encodeTagged({ 1: text }) });
for (const turn of await client.last(contextId, { limit: 2, details: true })) {
	console.log(`${turn.createdAt.toISOString()} turn ${turn.id}: ${TaggedMap.decode(turn.payload).get(1)}`);
}
client.close();
