/** The committed types are what the OpenAPI document says, and every route of the store in it is served by the client. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";
import { expect, it } from "vitest";
import { repositoryFile } from "../testdata.js";

it("src/http/openapi.ts is generated from docs/openapi.json: run `npm run generate`", async () => {
	const document = new URL("../../../../docs/openapi.json", import.meta.url);
	const generated = `${COMMENT_HEADER}${astToString(await openapiTS(document))}`;
	const committed = readFileSync(fileURLToPath(new URL("../../src/http/openapi.ts", import.meta.url)), "utf8");
	expect(committed).toBe(generated);
});

/** Routes that are another spelling of one that the client uses, or are for browsers. */
const NOT_CALLED = [
	"/",
	"/health",
	"/v1/metrics",
	"/v1/settings",
	"/v1/contexts/create",
	"/v1/contexts/{context_id}/append",
];

/**
 * The client is the store's. Agents reach a world over MCP; programs reach worlds, runs and wrapped terminals over
 * plain HTTP.
 */
const OF_OTHER_PARTS = /^\/(v1\/(worlds|sessions|demo)|invocations|mcp|api)(\/|$)/;

it("every path of the store in the document is in the client", () => {
	const sources = ["client.ts", "events.ts"].map((name) =>
		readFileSync(fileURLToPath(new URL(`../../src/http/${name}`, import.meta.url)), "utf8"),
	);
	const written = sources.join("\n").replaceAll(/\$\{[^}]*\}/g, "{}");
	const { paths } = JSON.parse(repositoryFile("docs/openapi.json")) as { paths: object };
	const ofTheStore = Object.keys(paths).filter((path) => !OF_OTHER_PARTS.test(path));
	const expected = ofTheStore.filter((path) => !NOT_CALLED.includes(path));
	expect(expected.length).toBeGreaterThan(15);
	const missing = expected.filter((path) => !written.includes(path.replaceAll(/\{[^}]*\}/g, "{}")));
	expect(missing).toEqual([]);
});
