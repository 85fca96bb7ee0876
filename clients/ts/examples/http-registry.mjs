// The gateway: what the registry knows about a type. A descriptor is kept, and revalidated by its ETag.
import { GatewayClient } from "@turnkeep/client/http";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
await client.putBundle({
	registry_version: 1,
	bundle_id: "examples-registry-1",
	types: { "example.Task": { versions: { 1: { fields: { 1: { name: "title", type: "string" } } } } } },
});
for (const { type_id, latest_version } of (await client.types()).types) {
	const { fields } = await client.typeDescriptor(type_id, latest_version);
	console.log(
		`${type_id}@${latest_version}: ${Object.values(fields)
			.map((field) => field.name)
			.join(", ")}`,
	);
}
