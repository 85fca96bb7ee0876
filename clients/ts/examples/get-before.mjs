// GET_BEFORE: pages back from any turn; `history` does it for you, newest first.
import { connect, encodeTagged, TaggedMap } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
for (const text of ["one", "two", "three"])
	await client.append({ contextId, type, payload: encodeTagged({ 1: text }) });
const [newest] = await client.last(contextId, { limit: 1 });
const older = await client.before(contextId, newest.id, { limit: 10 });
console.log(`before turn ${newest.id} there are ${older.length}`);
for await (const turn of client.history(contextId)) console.log(TaggedMap.decode(turn.payload).get(1));
client.close();
