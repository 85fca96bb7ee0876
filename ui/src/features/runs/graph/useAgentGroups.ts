/** Which agents wait, run, failed or rest, and which the filter lets through. Changes only when a group does. */

import { useMemo } from "react";
import type { RunState } from "../../../model/run";
import { inCreationOrder, NODE_GROUPS, type NodeGroup, nodeGroup } from "../../../model/run-words";
import { useRun } from "./run-source";
import type { AgentFilter } from "./useRunScreen";

export type AgentGroups = Readonly<Record<NodeGroup, readonly string[]>>;

export function useAgentGroups(): AgentGroups {
	const shape = useRun(shapeOf);
	return useMemo(() => JSON.parse(shape) as AgentGroups, [shape]);
}

/** Nodes change with every token, their groups rarely: as a text they compare by value. */
function shapeOf(state: RunState): string {
	const known = shapes.get(state.nodes);
	if (known !== undefined && known.approvals === state.approvals) return known.shape;
	const groups: Record<NodeGroup, string[]> = { waiting: [], failed: [], running: [], idle: [] };
	const approvals = Object.values(state.approvals);
	for (const node of inCreationOrder(state.nodes)) groups[nodeGroup(node, approvals)].push(node.id);
	const shape = JSON.stringify(groups);
	shapes.set(state.nodes, { approvals: state.approvals, shape });
	return shape;
}

const shapes = new WeakMap<RunState["nodes"], { readonly approvals: RunState["approvals"]; readonly shape: string }>();

/** The agents that a filter lets through; null if all. */
export function useShown(groups: AgentGroups, filter: AgentFilter): ReadonlySet<string> | null {
	return useMemo(() => {
		switch (filter) {
			case "all":
				return null;
			case "active":
				return new Set([...groups.running, ...groups.waiting]);
			case "waiting":
				return new Set([...groups.waiting, ...groups.failed]);
		}
	}, [groups, filter]);
}

export function countOf(groups: AgentGroups): number {
	return NODE_GROUPS.reduce((sum, group) => sum + groups[group].length, 0);
}
