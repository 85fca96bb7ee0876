/** The names of a run's agents, which change far less often than the agents do. */

import { useMemo } from "react";
import { labelWithAlias } from "../../../model/agent-name";
import type { RunState } from "../../../model/run";
import { inCreationOrder, leaderOf } from "../../../model/run-words";
import { useRun } from "./run-source";

export interface AgentNames {
	/** In the order of their creation. */
	readonly all: ReadonlyMap<string, string>;
	/** The agent that gets a message without a receiver. */
	readonly leader: string | null;
}

export function useAgentNames(): AgentNames {
	const shape = useRun(shapeOf);
	return useMemo(() => {
		const { names, leader } = JSON.parse(shape) as Shape;
		return { all: new Map(names), leader };
	}, [shape]);
}

interface Shape {
	readonly names: readonly (readonly [id: string, name: string])[];
	readonly leader: string | null;
}

const shapes = new WeakMap<RunState["nodes"], string>();

function shapeOf({ nodes }: RunState): string {
	const known = shapes.get(nodes);
	if (known !== undefined) return known;
	const names = inCreationOrder(nodes).map(
		({ id, label, alias }) => [id, labelWithAlias(label, alias ?? null)] as const,
	);
	const shape = JSON.stringify({ names, leader: leaderOf(nodes)?.id ?? null } satisfies Shape);
	shapes.set(nodes, shape);
	return shape;
}
