/** Approve, approve for longer, edit, deny, deny with words: the answers to a call that waits. */

import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox } from "../../components/Field";
import { Menu } from "../../components/Menu";
import { SafeText } from "../../components/SafeText";
import type { LastingScope } from "../../model/approval-rule";
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
	readonly approval: Schema<"ApprovalView">;
	readonly similar: readonly OpenApproval[];
}

export function PermissionForm({ approval, similar }: PermissionFormProps) {
	const [step, setStep] = useState<Step>(BUTTONS);
	const [areSimilarToo, setSimilarToo] = useState(false);
	const block = useActionBlock();
	const resolve = useResolve();
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
				<Menu
					trigger={<Button>Approve for longer</Button>}
					actions={[
						{ label: "For this agent…", onSelect: () => setStep({ kind: "scope", scope: "node" }) },
						{ label: "For this run…", onSelect: () => setStep({ kind: "scope", scope: "run" }) },
					]}
				/>
				<Button data-key="e" onClick={() => setStep({ kind: "edit" })}>
					Edit…
				</Button>
				<Button data-key="d" blocked={block} isPending={resolve.isPending} onClick={() => send({ status: "denied" })}>
					Deny
				</Button>
				<Button onClick={() => setStep({ kind: "deny" })}>Deny with words…</Button>
			</div>
			{step.kind === "scope" && <ScopeForm {...form} scope={step.scope} />}
			{step.kind === "edit" && <EditForm {...form} />}
			{step.kind === "deny" && <DenyForm {...form} />}
			{resolve.error !== null && <ErrorNote context="It was not answered." error={resolve.error} />}
		</>
	);
}
