// SUBSCRIBE and CANCEL: appends as they happen. Leaving the loop cancels; a lost connection resumes by itself.
import { connect, encodeTagged, TaggedMap } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
const append = (text) => client.append({ contextId, type, payload: encodeTagged({ 1: text }) });
await append("was there before");
for await (const { position, turn } of client.subscribe({ contextId, after: 0n })) {
	const text = TaggedMap.decode(turn.payload).get(1);
	console.log(`at ${position}: ${text}`);
	if (text === "came just now") break;
	await append("came just now");
}
client.close();
