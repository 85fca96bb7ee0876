/** An agent of a run by its id, with its state. The agent may be deleted. */

import { RefChip } from "../../../components/refs/RefChip";
import type { RunNode } from "../../../model/run";
import { nodeStatusWord } from "../../../model/run-words";

export interface AgentChipProps {
	readonly id: string;
	readonly nodes: Readonly<Record<string, RunNode>>;
}

export function AgentChip({ id, nodes }: AgentChipProps) {
	const node = nodes[id];
	const state = node === undefined ? null : nodeStatusWord(node.status);
	return <RefChip to={{ kind: "node", id }} name={node?.label ?? "a deleted agent"} state={state} />;
}
