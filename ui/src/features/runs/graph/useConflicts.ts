/** The agents that write the same file as another one, with the words for it. */

import { useMemo } from "react";
import { useAttention } from "../../../api/waiting";
import { firstLine } from "../../../model/text-safety";

export function useConflicts(runId: string): ReadonlyMap<string, string> {
	const { data } = useAttention();
	return useMemo(() => {
		const mine = (data ?? []).filter((item) => item.kind === "conflict" && item.runId === runId);
		return new Map(
			mine.flatMap(({ nodeId, summary }) => (nodeId == null ? [] : [[nodeId, firstLine(summary, 160)] as const])),
		);
	}, [data, runId]);
}
