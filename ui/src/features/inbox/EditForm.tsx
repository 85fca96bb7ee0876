/**
 * Changes the arguments of a call before it runs, and shows the difference before it is approved. Programs that cannot
 * take changed arguments refuse; the server says so.
 */

import { useMemo } from "react";
import { Button } from "../../components/Button";
import { DiffView } from "../../components/DiffView";
import { TextArea } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import { argumentText } from "../../model/argument-text";
import type { DiffFile } from "../../model/diff";
import type { Schema } from "../../model/schema";
import { diffTexts } from "../../model/text-diff";
import type { AnswerFormProps } from "./answer-form";
import css from "./Inbox.module.css";

export function EditForm({ approval, block, isPending, onSend, onClose }: AnswerFormProps) {
	const original = JSON.stringify(approval.tool.args, null, 2);
	const [typed, setTyped, clear] = useDraft(`edit:${approval.approvalId}`);
	const text = typed === "" ? original : typed;
	const read = readJson(text);
	const diff = useMemo(() => diffOf(approval.tool, text), [approval.tool, text]);
	const reason =
		block ??
		(read.error !== null ? "The arguments are no JSON" : diff === null ? "The arguments were not changed" : null);
	const cancel = () => {
		clear();
		onClose();
	};
	return (
		<div className={css.form}>
			<TextArea
				label="Arguments as JSON"
				value={text}
				rows={Math.min(16, text.split("\n").length + 1)}
				spellCheck={false}
				error={read.error}
				onChange={(event) => setTyped(event.currentTarget.value)}
			/>
			{diff !== null && (
				<section aria-label="What you changed" className={css.changed}>
					<DiffView files={[diff]} />
				</section>
			)}
			<div className={css.answers}>
				<Button
					look="primary"
					blocked={reason}
					isPending={isPending}
					onClick={() => onSend({ status: "modified", modifiedArgs: read.value })}
				>
					Approve with these arguments
				</Button>
				<Button onClick={cancel}>Cancel</Button>
			</div>
		</div>
	);
}

interface ReadJson {
	readonly value: unknown;
	readonly error: string | null;
}

function readJson(text: string): ReadJson {
	try {
		return { value: JSON.parse(text), error: null };
	} catch (error) {
		return { value: null, error: error instanceof Error ? error.message : String(error) };
	}
}

/** How the typed arguments differ from those that the agent asked for; null if they do not, or are no JSON yet. */
function diffOf(tool: Schema<"ToolView">, typed: string): DiffFile | null {
	const { value, error } = readJson(typed);
	if (error !== null) return null;
	return diffTexts(`Arguments of ${tool.name}`, argumentText(tool.args), argumentText(value));
}
