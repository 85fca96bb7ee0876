// The gateway: a turn written by field names, read typed and raw.
import { GatewayClient } from "@turnkeep/client/http";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
await client.putBundle({
	registry_version: 1,
	bundle_id: "examples-http-1",
	types: { "example.Reply": { versions: { 1: { fields: { 1: { name: "text", type: "string" } } } } } },
});
const { context_id } = await client.createContext();
const data = { text: "by name" };
await client.append(context_id, { type_id: "example.Reply", type_version: 1, data, idempotency_key: "reply-1" });
const { turns } = await client.turns(context_id, { view: "both", bytes_render: "hex" });
for (const turn of turns) console.log(`turn ${turn.turn_id}: ${turn.data.text} (${turn.bytes_hex})`);
