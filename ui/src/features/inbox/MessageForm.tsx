/** A message to the agent that an item is about, or to the run's lead. */

import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent } from "../../api/idempotency";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { TextArea } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import { type AttentionItem, attentionKey } from "../../model/attention";
import css from "./Inbox.module.css";
import { useItemAction } from "./useItemAction";

export function MessageForm({ item }: { readonly item: AttentionItem }) {
	const [text, setText, clear] = useDraft(`inbox:${attentionKey(item)}`);
	const offline = useActionBlock();
	const content = text.trim();
	const chat = useItemAction((key) => {
		const body = { content, ...(item.nodeId == null ? {} : { nodeId: item.nodeId }) };
		const path = { run_id: item.runId };
		return answer(api.POST("/api/runs/{run_id}/chat", { params: { path }, body, headers: idempotent(key) }));
	}, clear);
	return (
		<details>
			<summary className={css.hint}>Write a message</summary>
			<div className={css.form}>
				<TextArea label="Message" value={text} rows={3} onChange={(event) => setText(event.currentTarget.value)} />
				<div className={css.answers}>
					<Button
						look="primary"
						blocked={offline ?? (content === "" ? "Write a message first" : null)}
						isPending={chat.isPending}
						onClick={chat.send}
					>
						Send the message
					</Button>
				</div>
				{chat.error !== null && <ErrorNote context="The message was not sent." error={chat.error} />}
			</div>
		</details>
	);
}
