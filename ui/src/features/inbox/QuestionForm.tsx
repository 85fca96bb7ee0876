/** A question of an agent: its options, and a field for other words. It blocks nothing. */

import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { TextArea } from "../../components/Field";
import { SafeText } from "../../components/SafeText";
import { useDraft } from "../../components/useDraft";
import type { Schema } from "../../model/schema";
import css from "./Inbox.module.css";
import { useResolve } from "./useResolve";

export function QuestionForm({ approval }: { readonly approval: Schema<"ApprovalView"> }) {
	const [text, setText, clear] = useDraft(`answer:${approval.approvalId}`);
	const resolve = useResolve(clear);
	const offline = useActionBlock();
	const send = (words: string) =>
		resolve.send([approval.approvalId], { status: "modified", modifiedArgs: { answer: words } });
	const block = offline ?? (text.trim() === "" ? "Write an answer first" : null);
	return (
		<>
			{approval.options.length > 0 && (
				<div className={css.answers}>
					{approval.options.map((option) => (
						<Button key={option} blocked={offline} isPending={resolve.isPending} onClick={() => send(option)}>
							<SafeText text={option} escapes="strip" />
						</Button>
					))}
				</div>
			)}
			<div className={css.form}>
				<TextArea label="Your answer" value={text} rows={3} onChange={(event) => setText(event.currentTarget.value)} />
				<div className={css.answers}>
					<Button
						look="primary"
						data-key="a"
						blocked={block}
						isPending={resolve.isPending}
						onClick={() => send(text.trim())}
					>
						Send the answer
					</Button>
				</div>
			</div>
			{resolve.error !== null && <ErrorNote context="It was not answered." error={resolve.error} />}
		</>
	);
}
