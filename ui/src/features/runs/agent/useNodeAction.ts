/** Acts on an agent or on its program. A repeated press while the outcome is unknown is the same request. */

import { useMutation } from "@tanstack/react-query";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { toast } from "../../../components/toasts";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";

export type NodeAction = "interrupt" | "retry" | "start" | "stop" | "reset";

export interface NodeRequest {
	readonly action: NodeAction;
	/** Whether a new session also drops the inputs that wait. */
	readonly clearInbox?: boolean;
}

const DONE: Record<NodeAction, string> = {
	interrupt: "its turn is being interrupted",
	retry: "the inputs of the failed turn wait again",
	start: "its program starts",
	stop: "its program was stopped",
	reset: "its next turn begins a new session",
};

export function useNodeAction(node: Pick<RunNode, "id" | "runId" | "label">) {
	const form = useFormKey();
	return useMutation({
		mutationFn: ({ action, clearInbox = false }: NodeRequest) => {
			const params = { path: { run_id: node.runId, id: node.id, action } };
			const headers = idempotent(`${form.key}-${action}`);
			return answer(api.POST("/api/runs/{run_id}/nodes/{id}/{action}", { params, headers, body: { clearInbox } }));
		},
		onSuccess(_, { action }) {
			form.renew();
			toast(`${firstLine(node.label, 40)}: ${DONE[action]}`);
		},
		onError: form.renewIfRefused,
	});
}
