import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSIBLE = /\.(html|js|css|svg|json|txt|map)$/;
/** Below this size the header of a response outweighs what compression saves. */
const BYTES_MIN = 1024;

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

/**
 * Writes `.br` and `.gz` next to each file of a build that gets smaller by it.
 *
 * The server embeds all three and sends what the browser accepts, so it never compresses at run time.
 */
export function compressedCopies(): Plugin {
	let outDir = "dist";
	return {
		name: "compressed-copies",
		apply: "build",
		configResolved(config) {
			outDir = config.build.outDir;
		},
		async closeBundle() {
			const entries = await readdir(outDir, { recursive: true, withFileTypes: true });
			const files = entries.filter((entry) => entry.isFile() && COMPRESSIBLE.test(entry.name));
			await Promise.all(files.map((file) => compress(join(file.parentPath, file.name))));
		},
	};
}

async function compress(path: string): Promise<void> {
	const content = await readFile(path);
	if (content.length < BYTES_MIN) return;
	const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
	const [small, smaller] = await Promise.all([gzipped(content, { level: 9 }), brotli(content, { params })]);
	if (small.length < content.length) await writeFile(`${path}.gz`, small);
	if (smaller.length < content.length) await writeFile(`${path}.br`, smaller);
}
