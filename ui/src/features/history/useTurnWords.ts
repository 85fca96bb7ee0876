/** What the turns in view say. Rows that are in view together are fetched together. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { type DagBranch, type DagTurn, pageOf } from "../../model/dag";
import { type TurnWords, turnWords } from "../../model/history";

const PAGE_TURNS = 50;

/** Undefined while it is fetched. */
export function useTurnWords(branch: DagBranch, turn: DagTurn): TurnWords | undefined {
	const page = pageOf(branch, turn, PAGE_TURNS);
	const { data } = useQuery({
		queryKey: keys.turn(page.newest, "words", page.limit),
		// Turns never change.
		staleTime: Number.POSITIVE_INFINITY,
		// A turn that is appended makes the newest page another one, which has the same turns and one more.
		placeholderData: keepPreviousData,
		queryFn: async ({ signal }) => {
			const query = { limit: page.limit, before_turn_id: page.before ?? "0" };
			const params = { path: { context_id: branch.context }, query };
			const { turns } = await answer(api.GET("/v1/contexts/{context_id}/turns", { params, signal }));
			return new Map(turns.map((each) => [each.turn_id, turnWords(each)]));
		},
		select: useCallback((words: ReadonlyMap<string, TurnWords>) => words.get(turn.id), [turn.id]),
	});
	return data;
}
