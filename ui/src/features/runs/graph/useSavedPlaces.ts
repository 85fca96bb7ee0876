/** A place that a person chose for a card is kept with the run. The card stands there at once: to move it back is free. */

import { useCallback } from "react";
import { errorWords } from "../../../api/errors";
import { toast } from "../../../components/toasts";
import type { Point } from "../../../model/graph-layout";
import { useNodeChange } from "./useRunActions";

export function useSavedPlaces(runId: string): (id: string, position: Point) => void {
	const { mutate } = useNodeChange(runId);
	return useCallback(
		(id, { x, y }) => {
			const onError = (error: unknown) => toast(`The new place is only kept in this window. ${errorWords(error).what}`);
			mutate({ id, position: { x: Math.round(x), y: Math.round(y) } }, { onError });
		},
		[mutate],
	);
}
