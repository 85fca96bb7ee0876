/** State in the URL: filters, tabs, selections. A link to the page restores it. */

import { useCallback } from "react";
import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";

/** Null or empty removes the parameter. With `replace` Back skips the change: for text that is being typed. */
export type SetParam = (value: string | null, options?: { readonly replace?: boolean }) => void;

/** One parameter of the URL: `const [kind, setKind] = useQueryParam("kind")`. */
export function useQueryParam(name: string): [value: string | null, set: SetParam] {
	const value = new URLSearchParams(useSearch()).get(name);
	const set = useCallback<SetParam>(
		(next, options) => {
			const params = new URLSearchParams(location.search);
			if (next === null || next === "") params.delete(name);
			else params.set(name, next);
			const search = params.toString();
			navigate(`${location.pathname}${search === "" ? "" : `?${search}`}`, options);
		},
		[name],
	);
	return [value, set];
}
