/** Approve, approve for longer, edit, deny, deny with words: the answers to a call that waits. */

import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox } from "../../components/Field";
import { Menu } from "../../components/Menu";
import { SafeText } from "../../components/SafeText";
import { type LastingScope, lastingScopes } from "../../model/approval-rule";
import type { Schema } from "../../model/schema";
import type { OpenApproval } from "../../model/similar-approvals";
import { DenyForm } from "./DenyForm";
import { EditForm } from "./EditForm";
import css from "./Inbox.module.css";
import { ScopeForm } from "./ScopeForm";
import { useResolve } from "./useResolve";

/** What is open below the buttons. */
type Step =
	| { readonly kind: "buttons" }
	| { readonly kind: "deny" }
	| { readonly kind: "edit" }
	| { readonly kind: "scope"; readonly scope: LastingScope };

const BUTTONS: Step = { kind: "buttons" };

export interface PermissionFormProps {
	readonly open: OpenApproval;
	readonly similar: readonly OpenApproval[];
}

export function PermissionForm({ open, similar }: PermissionFormProps) {
	const { approval } = open;
	// If the program cannot run other arguments, the form lets the person say what to do instead.
	const canEdit = open.canEdit !== false;
	const [step, setStep] = useState<Step>(BUTTONS);
	const [areSimilarToo, setSimilarToo] = useState(false);
	const block = useActionBlock();
	const resolve = useResolve();
	const scopes = lastingScopes(open);
	const others = areSimilarToo ? similar.map((other) => other.approval.approvalId) : [];
	const send = (body: Schema<"ResolveApproval">) => resolve.send([approval.approvalId, ...others], body);
	const close = () => setStep(BUTTONS);
	const form = { approval, block, isPending: resolve.isPending, onSend: send, onClose: close };
	return (
		<>
			{similar.length > 0 && (
				<>
					<Checkbox
						label={similar.length === 1 ? "Answer 1 similar call too" : `Answer ${similar.length} similar calls too`}
						isOn={areSimilarToo}
						onChange={setSimilarToo}
					/>
					<ul className={css.similar}>
						{similar.map((other) => (
							<li key={other.approval.approvalId}>
								<SafeText text={other.approval.context} escapes="strip" />
							</li>
						))}
					</ul>
				</>
			)}
			<div className={css.answers}>
				<Button
					look="primary"
					data-key="a"
					blocked={block}
					isPending={resolve.isPending}
					onClick={() => send({ status: "approved" })}
				>
					Approve once
				</Button>
				{scopes.length > 0 && (
					<Menu
						trigger={<Button>Approve for longer</Button>}
						actions={scopes.map((scope) => ({
							label: scope === "node" ? "For this agent…" : "For this run…",
							onSelect: () => setStep({ kind: "scope", scope }),
						}))}
					/>
				)}
				{canEdit && (
					<Button data-key="e" onClick={() => setStep({ kind: "edit" })}>
						Edit…
					</Button>
				)}
				<Button data-key="d" blocked={block} isPending={resolve.isPending} onClick={() => send({ status: "denied" })}>
					Deny
				</Button>
				<Button {...(canEdit ? {} : { "data-key": "e" })} onClick={() => setStep({ kind: "deny" })}>
					{canEdit ? "Deny with words…" : "Deny with instructions…"}
				</Button>
			</div>
			{step.kind === "scope" && <ScopeForm {...form} scope={step.scope} />}
			{step.kind === "edit" && <EditForm {...form} />}
			{step.kind === "deny" && <DenyForm {...form} />}
			{resolve.error !== null && <ErrorNote context="It was not answered." error={resolve.error} />}
		</>
	);
}
