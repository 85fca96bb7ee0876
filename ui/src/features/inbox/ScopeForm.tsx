/** Shows the rule that an answer would make, before it is made. */

import { Link } from "wouter";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { SafeText } from "../../components/SafeText";
import { type LastingScope, ruleInWords } from "../../model/approval-rule";
import type { AnswerFormProps } from "./answer-form";
import css from "./Inbox.module.css";

export function ScopeForm({
	approval,
	scope,
	block,
	isPending,
	onSend,
	onClose,
}: AnswerFormProps & { readonly scope: LastingScope }) {
	return (
		<div className={css.form}>
			<p className={css.hint}>
				<SafeText text={ruleInWords(approval.tool.name, approval.tool.args, scope)} />{" "}
				<Link href={paths.system("settings")}>Rules can be deleted.</Link>
			</p>
			<div className={css.answers}>
				<Button
					look="primary"
					blocked={block}
					isPending={isPending}
					onClick={() => onSend({ status: "approved", scope })}
				>
					{scope === "node" ? "Approve for this agent" : "Approve for this run"}
				</Button>
				<Button onClick={onClose}>Cancel</Button>
			</div>
		</div>
	);
}
