// The gateway: the store's events as they happen. A lost connection resumes behind the last event.
import { GatewayClient } from "@turnkeep/client/http";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
const { context_id: contextId } = await client.createContext();
await client.append(contextId, { type_id: "", payload_b64: "gA==" });
for await (const { position, kind, data } of client.events({ contextId, after: "0" })) {
	console.log(`${position}: ${kind}`);
	if (kind === "turn.appended") {
		console.log(`turn ${data.turn_id} at depth ${data.depth}`);
		break;
	}
}
