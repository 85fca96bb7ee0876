// The gateway: contexts with labels, created, forked, listed.
import { GatewayClient } from "@turnkeep/client/http";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
const context = await client.createContext({ labels: { example: "http-contexts" } });
await client.setLabels(context.context_id, { example: "http-contexts", state: "done" });
for await (const { context_id, labels } of client.allContexts({ label: ["example=http-contexts"] })) {
	console.log(`context ${context_id} is ${labels.state}`);
}
