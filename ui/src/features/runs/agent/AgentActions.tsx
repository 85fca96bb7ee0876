/** What can be done to an agent now: interrupt its turn, try a failed one again, go to its connections. */

import { useMutation } from "@tanstack/react-query";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { idempotent, newIdempotencyKey } from "../../../api/idempotency";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { toast } from "../../../components/toasts";
import type { RunNode } from "../../../model/run";

export type NodeAct = "interrupt" | "retry" | "start" | "stop" | "reset";

/** A request that acts on an agent. Its key is made for each press; pressing while one is under way does nothing. */
export function useNodeAct(node: Pick<RunNode, "id" | "runId">) {
	return useMutation({
		mutationFn: ({ action, body = {} }: { readonly action: NodeAct; readonly body?: { clearInbox?: boolean } }) =>
			answer(
				api.POST("/api/runs/{run_id}/nodes/{id}/{action}", {
					params: { path: { run_id: node.runId, id: node.id, action } },
					body,
					headers: idempotent(newIdempotencyKey()),
				}),
			),
		onSuccess: (_, { action }) => toast(DONE[action]),
	});
}

const DONE: Record<NodeAct, string> = {
	interrupt: "The turn is being interrupted",
	retry: "The inputs of the failed turn wait again",
	start: "The program starts",
	stop: "The program was stopped",
	reset: "The next turn begins a new session",
};

export function AgentActions({ node }: { readonly node: RunNode }) {
	const act = useNodeAct(node);
	const block = useActionBlock();
	return (
		<>
			{act.error !== null && <ErrorNote context="Nothing was done." error={act.error} />}
			{(node.status === "running" || node.status === "blocked") && node.turnId != null && (
				<Button
					icon="pause"
					blocked={block}
					isPending={act.isPending}
					onClick={() => act.mutate({ action: "interrupt" })}
				>
					Interrupt the turn
				</Button>
			)}
			{node.status === "failed" && (
				<Button icon="play" blocked={block} isPending={act.isPending} onClick={() => act.mutate({ action: "retry" })}>
					Try the turn again
				</Button>
			)}
		</>
	);
}
