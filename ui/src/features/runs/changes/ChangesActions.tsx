/** Verify and apply, and what came of it. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { ApiError } from "../../../api/errors";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { Button } from "../../../components/Button";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { toast } from "../../../components/toasts";
import type { RunChanges } from "../../../model/changes";
import { formatNumberOf } from "../../../model/quantity";
import type { RunState } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import css from "./Changes.module.css";
import { FileNames } from "./FileNames";
import type { Apply } from "./useApply";

interface ChangesActionsProps {
	readonly state: RunState;
	readonly changes: RunChanges;
}

export function ChangesActions({ state, changes, apply }: ChangesActionsProps & { readonly apply: Apply }) {
	return (
		<div className={css.actions}>
			<ApplyButton state={state} changes={changes} apply={apply} />
			<VerifyButton state={state} />
		</div>
	);
}

function VerifyButton({ state }: { readonly state: RunState }) {
	const form = useFormKey();
	const block = useActionBlock();
	const commands = state.run?.verify ?? [];
	const verify = useMutation({
		mutationFn: () =>
			answer(
				api.POST("/api/runs/{run_id}/verify", {
					params: { path: { run_id: state.id } },
					headers: idempotent(form.key),
				}),
			),
		onSuccess({ ok }) {
			form.renew();
			toast(ok ? "The verification passed" : "The verification failed");
		},
		onError: form.renewIfRefused,
	});
	const reason =
		block ??
		(commands.length === 0 ? "This run has no verification commands. Its settings can name some." : null) ??
		(state.run?.status === "completed" ? "The run is completed: write to an agent, and it goes on" : null) ??
		(state.verification === null ? null : "A verification is under way");
	return (
		<>
			<Button blocked={reason} isPending={verify.isPending} onClick={() => verify.mutate()}>
				{commands.length === 0 ? "Verify" : `Verify with ${formatNumberOf(commands.length, "command")}`}
			</Button>
			{state.verification !== null && (
				<StateWord tone="running" word="verifying">
					the commands run · <Time at={state.verification.since} format="age" />
				</StateWord>
			)}
			{verify.error !== null && <ErrorNote context="It was not verified." error={verify.error} />}
		</>
	);
}

function ApplyButton({ state, changes: { waiting }, apply }: ChangesActionsProps & { readonly apply: Apply }) {
	const [isAsking, setAsking] = useState(false);
	const block = useActionBlock();
	const cwd = state.run?.cwd ?? null;
	const none = waiting.length === 0 ? "No work waits in a worktree" : null;
	const reason = block ?? (cwd === null ? "This run has no directory" : none);
	const name = waiting.length === 0 ? "Apply" : `Apply ${formatNumberOf(waiting.length, "file")}`;
	const where = cwd === null ? "" : ` to ${shortPath(cwd)}`;
	return (
		<>
			<Button
				look="primary"
				data-tour="apply"
				blocked={reason}
				isPending={apply.isPending}
				onClick={() => setAsking(true)}
			>
				{`${name}${where}`}
			</Button>
			<ConfirmDialog
				title={`${name}${where}?`}
				verb={name}
				isOpen={isAsking}
				isPending={apply.isPending}
				blocked={block}
				onConfirm={() => apply.mutate(undefined, { onSettled: () => setAsking(false) })}
				onClose={() => setAsking(false)}
			>
				<p>
					These files of <SafeText text={cwd ?? ""} /> get the work of all worktrees: all of them, or none if one
					conflicts.
				</p>
				<FileNames paths={waiting} />
				<p>Your commits, index and stash are not touched. The applied worktrees are removed.</p>
			</ConfirmDialog>
			{apply.error !== null && <ApplyRefused error={apply.error} />}
		</>
	);
}

function ApplyRefused({ error }: { readonly error: unknown }) {
	const found = error instanceof ApiError ? error.details.paths : undefined;
	const paths = Array.isArray(found) ? found.filter((path): path is string => typeof path === "string") : [];
	return (
		<div className={css.wide}>
			<ErrorNote context="No file was changed." error={error} />
			{paths.length > 0 && (
				<>
					<p>
						Ask one of the agents to take the other’s version into account, or change the file yourself, then apply
						again. In conflict:
					</p>
					<FileNames paths={paths} />
				</>
			)}
		</div>
	);
}

/** The last two parts of a directory's path. */
function shortPath(path: string): string {
	const parts = path.split("/").filter((part) => part !== "");
	return firstLine(parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`, 40);
}
