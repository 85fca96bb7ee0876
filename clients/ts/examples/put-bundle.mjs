// REGISTRY_PUT_BUNDLE: types become known. With the bundle, payloads are written and read by field names.
import { connect, TypeRegistry } from "@turnkeep/client/node";

const bundle = {
	registry_version: 1,
	bundle_id: "examples-1",
	types: {
		"example.Note": {
			versions: {
				1: {
					fields: {
						1: { name: "author", type: "u8", enum: "example.Author" },
						2: { name: "text", type: "string" },
						3: { name: "written_at", type: "u64", semantic: "unix_ms" },
					},
				},
			},
		},
	},
	enums: { "example.Author": { 1: "person", 2: "agent" } },
};
const type = { id: "example.Note", version: 1 };
const registry = new TypeRegistry([bundle]);

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
console.log((await client.putBundle(bundle)) ? "the bundle is new" : "the bundle was there");
const { contextId } = await client.createContext();
const payload = registry.encode(type, { author: "agent", text: "typed", written_at: new Date(0) });
await client.append({ contextId, type, payload });
const [turn] = await client.last(contextId);
console.log(registry.decode(turn.type, turn.payload));
client.close();
