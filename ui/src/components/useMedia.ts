/** Whether a media query fits now: for what CSS alone cannot do, such as showing a list instead of a graph. */

import { useCallback, useSyncExternalStore } from "react";

/** Where the rail is a bottom bar and the drawer a sheet. */
export const NARROW = "(max-width: 639px)";

export function useMedia(query: string): boolean {
	const subscribe = useCallback(
		(listener: () => void) => {
			const list = matchMedia(query);
			list.addEventListener("change", listener);
			return () => list.removeEventListener("change", listener);
		},
		[query],
	);
	return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}
