/** What can be done to an agent now: interrupt its turn, or try a failed one again. */

import { useActionBlock } from "../../../api/connection";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import type { RunNode } from "../../../model/run";
import { useNodeAction } from "./useNodeAction";

export function AgentActions({ node }: { readonly node: RunNode }) {
	const act = useNodeAction(node);
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
