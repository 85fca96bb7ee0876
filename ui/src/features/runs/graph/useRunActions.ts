/** What a person does to a run, its agents and its edges. Nothing is shown as done before the server says so. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { keys } from "../../../api/keys";
import type { Schema } from "../../../model/schema";

/** Changes fields of the run: pause, resume, complete, modes, goal. */
export function useRunChange(run: string) {
	return useMutation({
		mutationFn: (body: Schema<"ChangeRun">) =>
			answer(api.PATCH("/api/runs/{run_id}", { params: { path: { run_id: run } }, body })),
	});
}

/** `onDone` is called whatever is shown by then: the event of the deletion may close the dialog before the answer comes. */
export function useRunDelete(run: string, onDone: () => void) {
	const client = useQueryClient();
	return useMutation({
		onSuccess() {
			// The list that opens next must not show it again.
			void client.invalidateQueries({ queryKey: keys.runs() });
			onDone();
		},
		mutationFn: () => answer(api.DELETE("/api/runs/{run_id}", { params: { path: { run_id: run } } })),
	});
}

export function useNodeChange(run: string) {
	return useMutation({
		mutationFn: ({ id, ...body }: Schema<"ChangeNode"> & { readonly id: string }) =>
			answer(api.PATCH("/api/runs/{run_id}/nodes/{id}", { params: { path: { run_id: run, id } }, body })),
	});
}

export function useNodeDelete(run: string) {
	return useMutation({
		mutationFn: (id: string) =>
			answer(api.DELETE("/api/runs/{run_id}/nodes/{id}", { params: { path: { run_id: run, id } } })),
	});
}

export function useEdgeDelete(run: string) {
	return useMutation({
		mutationFn: (id: string) =>
			answer(api.DELETE("/api/runs/{run_id}/edges/{id}", { params: { path: { run_id: run, id } } })),
	});
}

export function useEdgeCreate(run: string) {
	const form = useFormKey();
	return useMutation({
		mutationFn: (body: Schema<"CreateEdge">) => {
			const params = { path: { run_id: run } };
			return answer(api.POST("/api/runs/{run_id}/edges", { params, headers: idempotent(form.key), body }));
		},
		onSuccess: form.renew,
		onError: form.renewIfRefused,
	});
}

export interface NewAgent {
	readonly node: Schema<"CreateNode">;
	/** The agent that hands work to it. */
	readonly from: string | null;
}

/** Makes an agent and, if wanted, the edge to it. The agent stays when only the edge fails. */
export function useNodeCreate(run: string) {
	const form = useFormKey();
	return useMutation({
		mutationFn: async ({ node, from }: NewAgent) => {
			const params = { path: { run_id: run } };
			const headers = idempotent(form.key);
			const made = await answer(api.POST("/api/runs/{run_id}/nodes", { params, headers, body: node }));
			if (from === null) return made.node;
			const edge = { params, headers: idempotent(`${form.key}-edge`), body: { from, to: made.node.id } };
			await answer(api.POST("/api/runs/{run_id}/edges", edge));
			return made.node;
		},
		onSuccess: form.renew,
		onError: form.renewIfRefused,
	});
}

export function useChat(run: string) {
	const form = useFormKey();
	return useMutation({
		mutationFn: (body: Schema<"SendChat">) => {
			const params = { path: { run_id: run } };
			return answer(api.POST("/api/runs/{run_id}/chat", { params, headers: idempotent(form.key), body }));
		},
		onSuccess: form.renew,
		onError: form.renewIfRefused,
	});
}
