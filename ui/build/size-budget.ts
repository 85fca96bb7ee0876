import { gzipSync } from "node:zlib";
import type { Plugin, Rolldown } from "vite";

/** What a browser fetches, compressed, before it can show any one screen. */
const FIRST_LOAD_BYTES_MAX = 300_000;

/** A screen, and what a browser without a cache fetches to show it. */
export interface FirstLoad {
	readonly screen: string;
	readonly gzipBytes: number;
}

/**
 * Fails a build in which a screen needs too much at first.
 *
 * What a screen itself loads later (graph, terminal, plots) does not count: it comes when the screen is there.
 */
export function sizeBudget(): Plugin {
	return {
		name: "size-budget",
		apply: "build",
		writeBundle(_options, bundle) {
			const [largest] = firstLoads(bundle);
			if (largest === undefined) return;
			const words = `the largest first load, of ${largest.screen}, has ${kilobytes(largest.gzipBytes)} compressed`;
			if (largest.gzipBytes > FIRST_LOAD_BYTES_MAX) {
				this.error(`${words}; at most ${kilobytes(FIRST_LOAD_BYTES_MAX)} are allowed`);
			}
			console.log(`${words}, of at most ${kilobytes(FIRST_LOAD_BYTES_MAX)}`);
		},
	};
}

function kilobytes(bytes: number): string {
	return `${Math.round(bytes / 1000)} KB`;
}

/** The first load of each screen, the largest first. Screens are what the entry imports dynamically. */
export function firstLoads(bundle: Rolldown.OutputBundle): FirstLoad[] {
	const outputs = Object.values(bundle);
	const page = outputs.find(({ fileName }) => fileName === "index.html");
	const entry = outputs.find((output) => output.type === "chunk" && output.isEntry);
	if (page === undefined || entry === undefined) throw new Error("the build has no page, or no entry");
	const shell = filesOf(bundle, entry.fileName);
	const screens = [...shell].flatMap((name) => chunkOf(bundle, name)?.dynamicImports ?? []);
	const loads = [...new Set(screens)].map((screen): FirstLoad => {
		const files = new Set([page.fileName, ...shell, ...filesOf(bundle, screen)]);
		const gzipBytes = [...files].reduce((sum, name) => sum + gzippedBytes(bundle, name), 0);
		return { screen: chunkOf(bundle, screen)?.name ?? screen, gzipBytes };
	});
	return loads.toSorted((one, other) => other.gzipBytes - one.gzipBytes);
}

/** A chunk, what it imports at once, and the style sheets of all of them. */
function filesOf(bundle: Rolldown.OutputBundle, first: string): Set<string> {
	const files = new Set([first]);
	// A Set's iterator also visits members that are added during the loop.
	for (const name of files) {
		const chunk = chunkOf(bundle, name);
		for (const imported of [...(chunk?.imports ?? []), ...(chunk?.viteMetadata?.importedCss ?? [])])
			files.add(imported);
	}
	return files;
}

function chunkOf(bundle: Rolldown.OutputBundle, name: string): Rolldown.OutputChunk | null {
	const output = bundle[name];
	return output?.type === "chunk" ? output : null;
}

function gzippedBytes(bundle: Rolldown.OutputBundle, name: string): number {
	const output = bundle[name];
	if (output === undefined) throw new Error(`the build has no ${name}`);
	return gzipSync(output.type === "chunk" ? output.code : output.source, { level: 9 }).length;
}
