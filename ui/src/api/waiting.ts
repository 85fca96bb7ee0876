/** What waits for a person, shared by the inbox, the rail and every page title. */

import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type AttentionItem, isWaiting } from "../model/attention";
import { answer, api } from "./http";
import { keys } from "./keys";

/** The items of the inbox, oldest first. */
export function useAttention(): UseQueryResult<readonly AttentionItem[]> {
	return useQuery({
		queryKey: keys.attention(),
		queryFn: async ({ signal }): Promise<readonly AttentionItem[]> =>
			(await answer(api.GET("/api/attention", { signal }))).items,
	});
}

/** How many items wait; 0 until it is known. */
export function useWaitingCount(): number {
	const { data } = useAttention();
	return data?.filter(isWaiting).length ?? 0;
}
