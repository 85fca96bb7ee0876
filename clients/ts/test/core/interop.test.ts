/** Directories and bundles as other programs write them. */

import { expect, test } from "vitest";
import { type Bundle, decodeTree, PayloadError, TypeRegistry } from "../../src/core/index.js";
import { fromHex, vectors } from "../testdata.js";

interface TreeCase {
	readonly name: string;
	readonly tree: string;
	readonly entries?: readonly unknown[];
}

test.each(vectors<TreeCase[]>("interop/trees.json"))("tree: $name", ({ tree, entries }) => {
	if (entries === undefined) {
		expect(() => decodeTree(fromHex(tree))).toThrow(PayloadError);
		return;
	}
	const read = decodeTree(fromHex(tree)).map((entry) => ({ ...entry, size: String(entry.size) }));
	expect(read).toEqual(entries);
});

test("types in another spelling are those that they stand for", () => {
	const registry = new TypeRegistry([vectors<Bundle>("interop/bundle.json")]);
	const type = { id: "com.example.agent.Item", version: 1 };
	const record = {
		role: "user",
		at: new Date(1_766_174_400_123),
		calls: [{ name: "ls", exit_code: -1, state: "done" }],
		usage: { tokens_in: 2n ** 53n + 1n },
	};
	expect(registry.decode(type, registry.encode(type, record))).toEqual(record);
	const wide = { role: "user", calls: [{ name: "ls", exit_code: 2 ** 31 }] };
	expect(() => registry.encode(type, wide)).toThrow(PayloadError);
});

test("a name that is a type means that type", () => {
	const bundle = (types: Bundle["types"]) => ({ registry_version: 1, bundle_id: "b", types });
	const fields = { "1": { name: "n", type: "int32" } };
	const registry = new TypeRegistry([
		bundle({ int32: { versions: { "1": { fields: {} } } }, T: { versions: { "1": { fields } } } }),
	]);
	const type = { id: "T", version: 1 };
	expect(registry.decode(type, registry.encode(type, { n: {} }))).toEqual({ n: {} });
});
