/** Raises the budget of a run or an agent, so that it can go on. */

import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { TextField } from "../../components/Field";
import { useFormDraft } from "../../components/useFormDraft";
import { type AttentionItem, attentionKey } from "../../model/attention";
import type { Schema } from "../../model/schema";
import css from "./Inbox.module.css";
import { useItemAction } from "./useItemAction";

export function BudgetForm({ item }: { readonly item: AttentionItem }) {
	const { form, set, clear } = useFormDraft(`budget:${attentionKey(item)}`, { tokens: "", dollars: "" });
	const { tokens, dollars } = form;
	const offline = useActionBlock();
	const budget = readBudget(tokens, dollars);
	const raise = useItemAction(() => changeBudget(item, budget ?? {}), clear);
	return (
		<div className={css.form}>
			<TextField
				label="Tokens at most"
				inputMode="numeric"
				value={tokens}
				hint="What was used already counts. Empty means no limit."
				onChange={(event) => set({ tokens: event.currentTarget.value })}
			/>
			<TextField
				label="US dollars at most"
				inputMode="decimal"
				value={dollars}
				onChange={(event) => set({ dollars: event.currentTarget.value })}
			/>
			<div className={css.answers}>
				<Button
					look="primary"
					blocked={offline ?? (budget === null ? "Write numbers above zero" : null)}
					isPending={raise.isPending}
					onClick={raise.send}
				>
					Change the budget and go on
				</Button>
			</div>
			{raise.error !== null && <ErrorNote context="The budget was not changed." error={raise.error} />}
		</div>
	);
}

/** Changes the budget first: a run that goes on with the old one would pause again. */
async function changeBudget(item: AttentionItem, budget: Schema<"BudgetRequest">): Promise<void> {
	const path = { run_id: item.runId };
	if (item.nodeId == null) {
		await answer(api.PATCH("/api/runs/{run_id}", { params: { path }, body: { budget } }));
	} else {
		const nodePath = { ...path, id: item.nodeId };
		await answer(api.PATCH("/api/runs/{run_id}/nodes/{id}", { params: { path: nodePath }, body: { budget } }));
	}
	await answer(api.PATCH("/api/runs/{run_id}", { params: { path }, body: { status: "running" } }));
}

/** The two numbers; null if one of them is none. */
function readBudget(tokens: string, dollars: string): Schema<"BudgetRequest"> | null {
	const read = (text: string) => (text.trim() === "" ? null : Number(text));
	const budget = { tokens: read(tokens), costUsd: read(dollars) };
	const isFit = (value: number | null) => value === null || (Number.isFinite(value) && value > 0);
	const isWhole = budget.tokens === null || Number.isInteger(budget.tokens);
	return isFit(budget.tokens) && isFit(budget.costUsd) && isWhole ? budget : null;
}
