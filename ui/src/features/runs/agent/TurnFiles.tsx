/** What can be done about the files of a turn: revert all of them, and keep or revert those that it was not allowed to write. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { ApiError } from "../../../api/errors";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { Button } from "../../../components/Button";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { toast } from "../../../components/toasts";
import { formatNumberOf } from "../../../model/quantity";
import type { Artifact } from "../../../model/run";
import type { Schema } from "../../../model/schema";
import css from "./Diffs.module.css";

interface TurnFilesProps {
	readonly runId: string;
	readonly turnId: string;
	readonly diff: Artifact;
}

interface FilesRequest {
	readonly action: "revert" | "keep";
	/** All that are concerned unless given. */
	readonly paths?: readonly string[];
}

/** Reverts or keeps files of a turn. A repeated press while the outcome is unknown is the same request. */
function useTurnFiles(runId: string, turnId: string) {
	const form = useFormKey();
	return useMutation({
		mutationFn: ({ action, paths }: FilesRequest) =>
			answer(
				api.POST("/api/runs/{run_id}/turns/{id}/{action}", {
					params: { path: { run_id: runId, id: turnId, action } },
					body: paths === undefined ? {} : { paths: [...paths] },
					headers: idempotent(form.key),
				}),
			),
		onSuccess({ paths }, { action }) {
			form.renew();
			const files = formatNumberOf(paths.length, "file");
			if (paths.length === 0) toast("No file was changed");
			else toast(action === "revert" ? `Reverted ${files}` : `Kept ${files}`);
		},
		onError: form.renewIfRefused,
	});
}

export function TurnFiles({ runId, turnId, diff }: TurnFilesProps) {
	const [isAsking, setAsking] = useState(false);
	const act = useTurnFiles(runId, turnId);
	const block = useActionBlock();
	const changed = diff.metadata?.filesChanged ?? [];
	const shared = diff.metadata?.shared ?? [];
	const mine = changed.filter((path) => !shared.includes(path));
	const reason = block ?? (mine.length === 0 ? "Another turn may have changed each of these files" : null);
	const revert = () => act.mutate({ action: "revert" }, { onSettled: () => setAsking(false) });
	return (
		<div className={css.files}>
			<div className={css.row}>
				<RefChip to={{ kind: "artifact", id: diff.id }} name="diff.patch" />
				<span>{diff.metadata?.summary}</span>
				<Button blocked={reason} isPending={act.isPending} onClick={() => setAsking(true)}>
					{`Revert ${formatNumberOf(mine.length, "file")}…`}
				</Button>
			</div>
			{shared.length > 0 && (
				<p className={css.note}>
					Another turn ran at the same time and may have changed: <SafeText text={shared.join(", ")} />. Nobody can tell
					whose these changes are, so they are not reverted with the rest.
				</p>
			)}
			<Violation diff={diff} runId={runId} turnId={turnId} />
			{act.error !== null && <ErrorNote context={refusal(act.error)} error={act.error} />}
			{act.data !== undefined && act.variables?.action === "revert" && (
				<p role="status">
					<SafeText text={revertWords(act.data)} />
				</p>
			)}
			<ConfirmDialog
				title={`Revert ${formatNumberOf(mine.length, "file")} of this turn?`}
				verb={`Revert ${formatNumberOf(mine.length, "file")}`}
				isOpen={isAsking}
				isPending={act.isPending}
				blocked={block}
				onConfirm={revert}
				onClose={() => setAsking(false)}
			>
				<p>These files get the content from before the turn. It is refused if somebody changed one of them since.</p>
				<p className={css.paths}>
					<SafeText text={mine.join("\n")} />
				</p>
				<p>The diff and the transcript stay. The agent is not told.</p>
			</ConfirmDialog>
		</div>
	);
}

/** What a revert did: files that it restored, and files that needed nothing. */
export function revertWords({ paths, already }: Schema<"TurnFilesAnswer">): string {
	const restored = paths.length === 0 ? [] : [`Restored as before the turn: ${paths.join(", ")}`];
	const same = already == null || already.length === 0 ? [] : [`Already as before the turn: ${already.join(", ")}`];
	return [...restored, ...same].join(". ");
}

/** What did not happen, with the files in the way. */
export function refusal(error: unknown): string {
	const paths = error instanceof ApiError ? error.details.paths : undefined;
	return Array.isArray(paths) && paths.length > 0
		? "No file was changed, because these were changed by somebody else."
		: "No file was changed.";
}

/** Files that the agent may not write: each is kept or reverted. */
function Violation({ runId, turnId, diff }: TurnFilesProps) {
	const act = useTurnFiles(runId, turnId);
	const block = useActionBlock();
	const [settled, setSettled] = useState<ReadonlySet<string>>(new Set());
	const paths = (diff.metadata?.violation ?? []).filter((path) => !settled.has(path));
	if (paths.length === 0) return null;
	const settle = (action: FilesRequest["action"], path: string) =>
		act.mutate({ action, paths: [path] }, { onSuccess: () => setSettled(new Set([...settled, path])) });
	return (
		<div className={css.violation}>
			<p>This agent may not write {formatNumberOf(paths.length, "file")} that this turn wrote:</p>
			{paths.map((path) => (
				<div key={path} className={css.row}>
					<span className={css.paths}>
						<SafeText text={path} />
					</span>
					<Button blocked={block} isPending={act.isPending} onClick={() => settle("keep", path)}>
						Keep it
					</Button>
					<Button blocked={block} isPending={act.isPending} onClick={() => settle("revert", path)}>
						Revert it
					</Button>
				</div>
			))}
			{act.error !== null && <ErrorNote context={refusal(act.error)} error={act.error} />}
		</div>
	);
}
