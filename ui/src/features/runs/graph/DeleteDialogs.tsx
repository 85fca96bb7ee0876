/** Asks before an agent, an edge or the run is deleted: what goes, what stays. */

import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { paths } from "../../../app/paths";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { toast } from "../../../components/toasts";
import { formatNumberOf } from "../../../model/quantity";
import { firstLine } from "../../../model/text-safety";
import { useRun } from "./run-source";
import { useAgentNames } from "./useAgentNames";
import { useEdgeDelete, useNodeDelete, useRunDelete } from "./useRunActions";

interface DeleteProps {
	readonly runId: string;
	readonly onClose: () => void;
}

export function DeleteAgentDialog({ runId, agent, onClose }: DeleteProps & { readonly agent: string }) {
	const remove = useNodeDelete(runId);
	const block = useActionBlock();
	const names = useAgentNames();
	const node = useRun((state) => state.nodes[agent]);
	const edges = useRun((state) => state.edges);
	const name = names.all.get(agent) ?? "the agent";
	const count = Object.values(edges).filter(({ from, to }) => from === agent || to === agent).length;
	const queued = node?.inboxCount ?? 0;
	const done = () => {
		toast(`Deleted ${name}`);
		onClose();
	};
	return (
		<ConfirmDialog
			title={`Delete the agent “${name}”?`}
			verb="Delete agent"
			isOpen
			isPending={remove.isPending}
			blocked={block}
			error={remove.error}
			onConfirm={() => remove.mutate(agent, { onSuccess: done })}
			onClose={onClose}
		>
			<p>
				Its program ends, {formatNumberOf(count, "connection")} of it {count === 1 ? "goes" : "go"}, and what it asked
				you is denied.
				{queued > 0 &&
					` ${formatNumberOf(queued, "waiting input")} from other agents ${queued === 1 ? "goes" : "go"} back.`}
			</p>
			<p>Its files, artifacts and transcript stay.</p>
		</ConfirmDialog>
	);
}

export function DeleteEdgeDialog({ runId, edge, onClose }: DeleteProps & { readonly edge: string }) {
	const remove = useEdgeDelete(runId);
	const block = useActionBlock();
	const names = useAgentNames();
	const found = useRun((state) => state.edges[edge]);
	const ends = [found?.from, found?.to].map((id) =>
		id === undefined ? "an agent" : (names.all.get(id) ?? "an agent"),
	);
	const done = () => {
		toast(`Disconnected ${ends[0]} and ${ends[1]}`);
		onClose();
	};
	return (
		<ConfirmDialog
			title={`Disconnect ${ends[0]} and ${ends[1]}?`}
			verb="Disconnect"
			isOpen
			isPending={remove.isPending}
			blocked={block}
			error={remove.error}
			onConfirm={() => remove.mutate(edge, { onSuccess: done })}
			onClose={onClose}
		>
			<p>They can no longer hand work to each other over this edge. What already waits in an inbox stays there.</p>
		</ConfirmDialog>
	);
}

export function DeleteRunDialog({ runId, onClose }: DeleteProps) {
	const block = useActionBlock();
	const run = useRun((state) => state.run);
	const agents = useAgentNames().all.size;
	const title = firstLine(run?.title ?? "", 60) || "without a title";
	const remove = useRunDelete(runId, () => {
		toast(`Deleted the run “${title}”`);
		navigate(paths.runs());
	});
	return (
		<ConfirmDialog
			title={`Delete the run “${title}”?`}
			verb="Delete run"
			isOpen
			isPending={remove.isPending}
			blocked={block}
			error={remove.error}
			onConfirm={() => remove.mutate()}
			onClose={onClose}
		>
			<p>
				{formatNumberOf(agents, "agent")} and their programs end, and the files that the server keeps for the run are
				removed, with every change that was not applied.
			</p>
			<p>Your directory stays as it is. The records of the run stay in the log.</p>
		</ConfirmDialog>
	);
}
