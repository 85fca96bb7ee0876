/** Makes a run and gives its goal to the agent that leads. */

import { useMutation } from "@tanstack/react-query";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { inCreationOrder, leaderOf } from "../../../model/run-words";
import type { Schema } from "../../../model/schema";

export interface NewRun {
	readonly body: Schema<"CreateRun">;
	/** Whether the goal is sent as the first message. */
	readonly starts: boolean;
}

export interface MadeRun {
	readonly run: Schema<"RunView">;
	/** Why the goal was not sent; null if it was, or was not meant to be. */
	readonly unsent: unknown;
}

export function useNewRun() {
	const form = useFormKey();
	return useMutation({
		mutationFn: async ({ body, starts }: NewRun): Promise<MadeRun> => {
			const headers = idempotent(form.key);
			const { run } = await answer(api.POST("/api/runs", { headers, body }));
			const receiver = leaderOf(run.nodes) ?? inCreationOrder(run.nodes)[0];
			const content = body.goal ?? "";
			if (!starts || receiver === undefined || content === "") return { run, unsent: null };
			const chat = { params: { path: { run_id: run.id } }, headers: idempotent(`${form.key}-goal`) };
			try {
				await answer(
					api.POST("/api/runs/{run_id}/chat", { ...chat, body: { content, nodeId: receiver.id, interrupt: false } }),
				);
				return { run, unsent: null };
			} catch (error) {
				// The run is there; its page is the place to send the goal again.
				return { run, unsent: error };
			}
		},
		onSuccess: form.renew,
		onError: form.renewIfRefused,
	});
}
