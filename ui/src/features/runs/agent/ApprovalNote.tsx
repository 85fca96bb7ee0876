/** An approval beside its tool: what was decided, or the two plain answers. All other answers are in the inbox. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { TextField } from "../../../components/Field";
import { SafeText } from "../../../components/SafeText";
import { Time } from "../../../components/Time";
import { useDraft } from "../../../components/useDraft";
import { resolutionWords } from "../../../model/resolution";
import type { Schema } from "../../../model/schema";
import type { AskedApproval } from "../../../model/transcript";
import css from "./Timeline.module.css";

export interface ApprovalNoteProps {
	readonly runId: string;
	readonly asked: AskedApproval;
}

export function ApprovalNote({ runId, asked: { approval, resolution } }: ApprovalNoteProps) {
	if (resolution !== null) return <Resolved resolution={resolution} />;
	return (
		<div className={css.approval}>
			<p>
				{approval.kind === "question" ? "Asks you: " : "Wants to "}
				<SafeText text={approval.context} escapes="strip" /> · <Time at={approval.createdAt} format="age" />
				{approval.expiresAt != null && (
					<>
						{" "}
						· denied by itself <Time at={approval.expiresAt} />
					</>
				)}
			</p>
			{approval.kind === "question" ? (
				<Link href={inboxPath(runId, approval.approvalId)}>Answer in the inbox</Link>
			) : (
				<PlainAnswers runId={runId} approvalId={approval.approvalId} />
			)}
		</div>
	);
}

function inboxPath(run: string, approvalId: string): string {
	return paths.inbox({ run, item: `approval:${approvalId}` });
}

function PlainAnswers({ runId, approvalId }: { readonly runId: string; readonly approvalId: string }) {
	const form = useFormKey();
	const block = useActionBlock();
	const [isDenying, setDenying] = useState(false);
	const [reason, setReason, clearReason] = useDraft(`deny:${approvalId}`);
	const resolve = useMutation({
		mutationFn: (body: Schema<"ResolveApproval">) =>
			answer(
				api.POST("/api/approvals/{id}/resolve", {
					params: { path: { id: approvalId } },
					body,
					headers: idempotent(form.key),
				}),
			),
		onSuccess: clearReason,
		onError: form.renewIfRefused,
	});
	const deny = () => resolve.mutate({ status: "denied", ...(reason === "" ? {} : { reason }) });
	return (
		<>
			<div className={css.answers}>
				<Button
					look="primary"
					blocked={block}
					isPending={resolve.isPending}
					onClick={() => resolve.mutate({ status: "approved" })}
				>
					Approve once
				</Button>
				<Button blocked={block} isPending={resolve.isPending} onClick={() => (isDenying ? deny() : setDenying(true))}>
					{isDenying ? "Deny" : "Deny…"}
				</Button>
				<Link href={inboxPath(runId, approvalId)}>All answers in the inbox</Link>
			</div>
			{isDenying && (
				<TextField
					label="Why not? The agent reads it."
					value={reason}
					onChange={(event) => setReason(event.currentTarget.value)}
					onKeyDown={(event) => event.key === "Enter" && !event.nativeEvent.isComposing && block === null && deny()}
				/>
			)}
			{resolve.error !== null && <ErrorNote context="It was not answered." error={resolve.error} />}
		</>
	);
}

function Resolved({ resolution }: { readonly resolution: Schema<"ResolutionView"> }) {
	return (
		<p className={css.line}>
			{resolutionWords(resolution)}
			{SCOPE_WORDS[resolution.scope]}
			{resolution.reason != null && (
				<>
					: <SafeText text={resolution.reason} />
				</>
			)}
		</p>
	);
}

const SCOPE_WORDS = { once: "", node: " for this agent from now on", run: " for this run from now on" };
