/** The answers to everything but approvals: continue, talk, retry, keep or revert files, raise a budget, apply. */

import { Link } from "wouter";
import { paths } from "../../app/paths";
import type { AttentionAction, AttentionItem } from "../../model/attention";
import { ActionButton } from "./ActionButton";
import { BudgetForm } from "./BudgetForm";
import { FilesForm } from "./FilesForm";
import css from "./Inbox.module.css";
import { MessageForm } from "./MessageForm";

export function OtherAnswers({ item }: { readonly item: AttentionItem }) {
	const can = (action: AttentionAction) => item.actions.includes(action);
	return (
		<>
			{(item.kind === "violation" || item.kind === "conflict") && <FilesForm item={item} />}
			{can("change-budget") && <BudgetForm item={item} />}
			<div className={css.answers}>
				{can("continue") && <ActionButton item={item} action="continue" />}
				{can("resume") && <ActionButton item={item} action="resume" />}
				{can("retry") && <ActionButton item={item} action="retry" />}
				{can("reset") && <ActionButton item={item} action="reset" />}
				{can("apply") && <Link href={paths.changes(item.runId)}>See the changes and apply them</Link>}
				{can("dismiss") && <ActionButton item={item} action="dismiss" />}
				{item.kind === "stall" && <Link href={paths.why(item.runId)}>Why did it stop?</Link>}
			</div>
			{can("chat") && <MessageForm item={item} />}
		</>
	);
}
