/** Makes pictures small: fewer colours in each, with `pngquant`. */

import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** A screen has few colours; most of those in a picture are the edges of letters. With half as many, small red signs turn brown. */
const COLOURS = 128;
/** `pngquant` answers so when the picture would grow. The picture then stays as it is. */
const PNGQUANT_SKIPPED = 98;

/** All files below a folder. */
function filesBelow(folder: string): string[] {
	return readdirSync(folder, { recursive: true, encoding: "utf8" })
		.map((name) => join(folder, name))
		.filter((path) => statSync(path).isFile());
}

/** Reduces the colours of every PNG below a folder. */
export function reduceColours(folder: string): void {
	for (const path of filesBelow(folder).filter((each) => each.endsWith(".png"))) reduceOne(path);
}

function reduceOne(path: string): void {
	const options = ["--force", "--skip-if-larger", "--speed", "1", "--nofs", "--strip", "--ext", ".png"];
	try {
		execFileSync("pngquant", [...options, String(COLOURS), path]);
	} catch (error) {
		const { code, status } = error as { readonly code?: string; readonly status?: number };
		if (code === "ENOENT") throw new Error("pngquant is missing: install the Debian package pngquant");
		if (status !== PNGQUANT_SKIPPED) throw error;
	}
}

export function folderBytes(folder: string): number {
	return filesBelow(folder).reduce((sum, path) => sum + statSync(path).size, 0);
}
