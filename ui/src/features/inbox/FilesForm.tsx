/** The files that an agent should not have written, or that two agents wrote at once: keep or revert them, path by path. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox } from "../../components/Field";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { type AttentionItem, questionedFiles } from "../../model/attention";
import css from "./Inbox.module.css";
import { useItemAction } from "./useItemAction";

export function FilesForm({ item }: { readonly item: AttentionItem }) {
	const turn = item.ref.slice("turn:".length);
	const { data, error } = useQuery({
		queryKey: keys.run(item.runId, "artifacts"),
		queryFn: async ({ signal }) => {
			const path = { run_id: item.runId };
			return (await answer(api.GET("/api/runs/{run_id}/artifacts", { params: { path }, signal }))).artifacts;
		},
	});
	if (error !== null) return <ErrorNote context="The files are not known." error={error} />;
	if (data === undefined) return <Skeleton lines={2} />;
	const files = questionedFiles(item.kind, turn, data);
	if (files.length === 0) return null;
	return <FileChoice item={item} turn={turn} files={files} />;
}

interface FileChoiceProps {
	readonly item: AttentionItem;
	readonly turn: string;
	readonly files: readonly string[];
}

function FileChoice({ item, turn, files }: FileChoiceProps) {
	const [skipped, setSkipped] = useState<ReadonlySet<string>>(new Set());
	const offline = useActionBlock();
	const chosen = files.filter((file) => !skipped.has(file));
	const act = (action: "keep" | "revert") => (key: string) =>
		answer(
			api.POST("/api/runs/{run_id}/turns/{id}/{action}", {
				params: { path: { run_id: item.runId, id: turn, action } },
				body: { paths: chosen },
				headers: idempotent(key),
			}),
		);
	const keep = useItemAction(act("keep"));
	const revert = useItemAction(act("revert"));
	const toggle = (file: string, isOn: boolean) => {
		const next = new Set(skipped);
		if (isOn) next.delete(file);
		else next.add(file);
		setSkipped(next);
	};
	const block = offline ?? (chosen.length === 0 ? "Choose a file first" : null);
	const count = chosen.length === 1 ? "1 file" : `${chosen.length} files`;
	return (
		<fieldset>
			<legend className={css.hint}>
				Files of <Link href={paths.agentTurn(item.runId, turn)}>this turn</Link>
			</legend>
			{files.map((file) => (
				<Checkbox
					key={file}
					label={<SafeText text={file} />}
					isOn={!skipped.has(file)}
					onChange={(isOn) => toggle(file, isOn)}
				/>
			))}
			<div className={css.answers}>
				{item.actions.includes("keep") && (
					<Button blocked={block} isPending={keep.isPending} onClick={keep.send}>{`Keep ${count}`}</Button>
				)}
				{item.actions.includes("revert") && (
					<Button blocked={block} isPending={revert.isPending} onClick={revert.send}>{`Revert ${count}`}</Button>
				)}
			</div>
			{keep.error !== null && <ErrorNote context="Nothing was kept." error={keep.error} />}
			{revert.error !== null && <ErrorNote context="Nothing was reverted." error={revert.error} />}
		</fieldset>
	);
}
