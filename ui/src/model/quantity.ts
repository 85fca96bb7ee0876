/** Sizes, counts and costs with their units. */

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** "812 B", "1.4 MiB". */
export function formatBytes(bytes: number): string {
	let value = bytes;
	let unit = 0;
	while (value >= 1024 && unit < BYTE_UNITS.length - 1) {
		value /= 1024;
		unit += 1;
	}
	return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** Groups of three digits, with thin spaces: "12 345". Text stays exact beyond 2^53. */
export function formatCount(count: number | string): string {
	return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** "1 file", "7 files". */
export function formatNumberOf(count: number, one: string, many = `${one}s`): string {
	return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Tokens in short: "980", "12.3 k", "4.1 M". */
export function formatTokens(tokens: number): string {
	if (tokens < 1000) return String(tokens);
	if (tokens < 999_500) return `${trimmed(tokens / 1000)} k`;
	return `${trimmed(tokens / 1_000_000)} M`;
}

function trimmed(value: number): string {
	return value >= 100 ? String(Math.round(value)) : value.toFixed(1);
}

/** "$0.0042", "$1.20". Small costs keep two digits that say something. */
export function formatCost(usd: number): string {
	if (usd === 0) return "$0";
	if (usd >= 0.1) return `$${usd.toFixed(2)}`;
	if (usd >= 0.0001) return `$${usd.toFixed(4)}`;
	return "< $0.0001";
}
