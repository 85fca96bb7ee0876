/** One press that lets a run or an agent go on. */

import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent } from "../../api/idempotency";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import type { AttentionItem } from "../../model/attention";
import { useItemAction } from "./useItemAction";

type PlainAction = "continue" | "resume" | "retry" | "reset" | "dismiss";

interface ActionWords {
	readonly verb: string;
	readonly failed: string;
}

const WORDS: Record<PlainAction, ActionWords> = {
	continue: { verb: "Continue the run", failed: "The run does not go on." },
	resume: { verb: "Resume the run", failed: "The run does not go on." },
	retry: { verb: "Retry the failed turn", failed: "The turn was not tried again." },
	reset: { verb: "Start a new session of the agent", failed: "The agent keeps its session." },
	dismiss: { verb: "Remove it from the inbox", failed: "It stays in the inbox." },
};

/** The key that presses the button of the focused item. What cannot be taken back has none. */
const KEYS: Partial<Record<PlainAction, string>> = { continue: "a", resume: "a", retry: "a", dismiss: "d" };

export interface ActionButtonProps {
	readonly item: AttentionItem;
	readonly action: PlainAction;
}

export function ActionButton({ item, action }: ActionButtonProps) {
	const block = useActionBlock();
	const perform = useItemAction((key: string) => request(item, action, key));
	const words = WORDS[action];
	return (
		<>
			<Button
				look={action === "reset" || action === "dismiss" ? "plain" : "primary"}
				data-key={KEYS[action]}
				blocked={block}
				isPending={perform.isPending}
				onClick={() => perform.send()}
			>
				{words.verb}
			</Button>
			{perform.error !== null && <ErrorNote context={words.failed} error={perform.error} />}
		</>
	);
}

function request(item: AttentionItem, action: PlainAction, key: string): Promise<unknown> {
	const run = { run_id: item.runId };
	switch (action) {
		case "continue":
		case "resume":
			return answer(api.PATCH("/api/runs/{run_id}", { params: { path: run }, body: { status: "running" } }));
		case "dismiss":
			return answer(api.POST("/api/runs/{run_id}/dismiss", { params: { path: run }, headers: idempotent(key) }));
		case "retry":
		case "reset":
			return answer(
				api.POST("/api/runs/{run_id}/nodes/{id}/{action}", {
					params: { path: { ...run, id: item.nodeId ?? "", action } },
					body: {},
					headers: idempotent(key),
				}),
			);
	}
}
