// The gateway: blobs, whole and in part.
import { GatewayClient } from "@turnkeep/client/http";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
const { content_hash_b3: hash } = await client.putBlob(new TextEncoder().encode("a blob over HTTP"));
const part = await client.blob(hash, { range: { start: 2, end: 6 } });
console.log(`${await client.hasBlob(hash)}: ${new TextDecoder().decode(part)}`);
