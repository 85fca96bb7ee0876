/** Matching of paths against patterns such as `/runs/:run/agents/:node`. Parameters are decoded; types name them. */

/** The parameters of a pattern, by their names. */
export type ParamsOf<Pattern extends string> = Pattern extends `${infer Head}/${infer Rest}`
	? ParamsOf<Head> & ParamsOf<Rest>
	: Pattern extends `:${infer Name}`
		? { readonly [Key in Name]: string }
		: Readonly<Record<never, never>>;

/** The parameters of a path; null if it does not fit or is not encoded properly. */
export function matchPath<Pattern extends string>(pattern: Pattern, path: string): ParamsOf<Pattern> | null {
	const wanted = pattern.split("/");
	const given = path.length > 1 ? path.replace(/\/$/, "").split("/") : path.split("/");
	if (wanted.length !== given.length) return null;
	const params: Record<string, string> = {};
	for (const [at, part] of wanted.entries()) {
		const text = decode(given[at] ?? "");
		if (text === null) return null;
		if (part.startsWith(":")) {
			if (text === "") return null;
			params[part.slice(1)] = text;
		} else if (part !== text) {
			return null;
		}
	}
	return params as ParamsOf<Pattern>;
}

function decode(text: string): string | null {
	try {
		return decodeURIComponent(text);
	} catch {
		return null;
	}
}
