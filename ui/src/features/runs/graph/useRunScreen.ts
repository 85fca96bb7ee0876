/** What is chosen on a run's screen, in the URL, and which dialog is open. Graph and list share it. */

import { useMemo, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { paths } from "../../../app/paths";
import { explain } from "../../../components/refs/why-store";
import { useQueryParam } from "../../../components/useQueryParam";
import { useRunSource } from "./run-source";

export type RunDialog =
	| { readonly kind: "add" }
	| { readonly kind: "connect"; readonly from: string; readonly to: string | null }
	| { readonly kind: "more"; readonly agent: string }
	| { readonly kind: "new-session"; readonly agent: string }
	| { readonly kind: "delete-agent"; readonly agent: string }
	| { readonly kind: "delete-edge"; readonly edge: string };

/** What cards, rows and keys can ask for. */
export interface GraphActions {
	readonly openAgent: (id: string) => void;
	readonly openEdge: (id: string) => void;
	readonly close: () => void;
	readonly connect: (from: string, to: string | null) => void;
	readonly askNewSession: (id: string) => void;
	readonly askDelete: (id: string) => void;
	readonly more: (id: string) => void;
	readonly why: (id: string) => void;
}

export type AgentFilter = "all" | "active" | "waiting";

export function readFilter(text: string | null): AgentFilter {
	return text === "active" || text === "waiting" ? text : "all";
}

export interface RunScreenState {
	readonly agent: string | null;
	readonly edge: string | null;
	readonly dialog: RunDialog | null;
	readonly openDialog: (dialog: RunDialog | null) => void;
	readonly actions: GraphActions;
}

export function useRunScreen(runId: string): RunScreenState {
	const [agent] = useQueryParam("agent");
	const [edge] = useQueryParam("edge");
	const [dialog, openDialog] = useState<RunDialog | null>(null);
	const source = useRunSource();
	const actions = useMemo((): GraphActions => {
		const ifNow = (next: RunDialog) => {
			// Nothing can be changed in the past.
			if (!source.isPast) openDialog(next);
		};
		return {
			openAgent: (id) => choose("agent", id),
			openEdge: (id) => choose("edge", id),
			close: () => choose("agent", null),
			connect: (from, to) => ifNow({ kind: "connect", from, to }),
			askNewSession: (id) => ifNow({ kind: "new-session", agent: id }),
			askDelete: (id) => ifNow({ kind: "delete-agent", agent: id }),
			more: (id) => ifNow({ kind: "more", agent: id }),
			why(id) {
				const turn = source.state().turns[id]?.id ?? source.state().nodes[id]?.turnId ?? null;
				if (turn === null) navigate(paths.why(runId));
				else explain(`turn:${turn}`);
			},
		};
	}, [source, runId]);
	return { agent, edge, dialog, openDialog, actions };
}

/** An agent or an edge, never both. What is chosen is no step of its own for Back. */
function choose(kind: "agent" | "edge", id: string | null): void {
	const params = new URLSearchParams(location.search);
	params.delete("agent");
	params.delete("edge");
	if (id !== null) params.set(kind, id);
	const search = params.toString();
	const next = `${location.pathname}${search === "" ? "" : `?${search}`}`;
	if (next !== `${location.pathname}${location.search}`) navigate(next, { replace: true });
}
