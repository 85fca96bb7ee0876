/** The graph, but on a narrow window the list, unless the URL says. */

import { NARROW, useMedia } from "../../../components/useMedia";
import { useQueryParam } from "../../../components/useQueryParam";

export function useRunViewKind(): "graph" | "list" {
	const [view] = useQueryParam("view");
	const isNarrow = useMedia(NARROW);
	if (view === "graph" || view === "list") return view;
	return isNarrow ? "list" : "graph";
}
