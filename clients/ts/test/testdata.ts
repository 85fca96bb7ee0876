/** The vectors that all languages share. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where a file of the repository is, by its path from the root. */
export function repositoryPath(path: string): string {
	return fileURLToPath(new URL(`../../../${path}`, import.meta.url));
}

/** A file of the repository, by its path from the root. */
export function repositoryFile(path: string): string {
	return readFileSync(repositoryPath(path), "utf8");
}

/** A JSON file below `testdata`. */
export function vectors<T>(path: string): T {
	return JSON.parse(repositoryFile(`testdata/${path}`)) as T;
}

/** Bytes from hex. */
export function fromHex(hex: string): Buffer {
	return Buffer.from(hex, "hex");
}
