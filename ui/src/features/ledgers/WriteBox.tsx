/** The input box under the stream. Who writes is whose eyes the screen has. */

import type { FormEvent } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Field } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import { type Eyes, eyesKey, joinNames, type Ledger, labelOf } from "../../model/ledger";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";
import { ledgerError } from "./ledger-error";
import { ReaderChoice } from "./ReaderChoice";
import { useWrite, type Written } from "./useWrite";

export interface WriteBoxProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly eyes: Exclude<Eyes, { kind: "audit" }>;
	/** Who can be chosen as a reader, besides the operator. */
	readonly people: readonly string[];
}

export function WriteBox({ world, ledger, eyes, people }: WriteBoxProps) {
	const [text, setText, clearText] = useDraft(`ledger:${world}:${eyesKey(eyes)}`);
	// Kept with the text: a text for two readers must not come back as one for everyone.
	const [readersText, setReadersText] = useDraft(`readers:${world}:${eyesKey(eyes)}`);
	const readers = readReaders(readersText);
	const block = useActionBlock();
	const write = useWrite(world, eyes);
	const name = eyes.kind === "person" ? labelOf(ledger, eyes.person) : ledger.operator_label;
	const why = block ?? (text === "" ? "Write something first" : null);
	const submit = (event?: FormEvent) => {
		event?.preventDefault();
		if (why !== null || write.isPending) return;
		// An empty list means "only me". The server requires at least one reader, so the author is it.
		const chosen = readers?.length === 0 && eyes.kind === "person" ? [eyes.person] : readers;
		write.mutate({ text, readers: chosen }, { onSuccess: ({ kind }) => kind === "written" && clearText() });
	};
	return (
		<form className={css.writeBox} onSubmit={submit}>
			<Field label={`Write as ${firstLine(name)}`}>
				{(ids) => (
					<textarea
						{...ids}
						rows={2}
						value={text}
						className={css.input}
						onChange={(event) => setText(event.target.value)}
						onKeyDown={(event) => {
							if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
						}}
					/>
				)}
			</Field>
			{eyes.kind === "person" && (
				<ReaderChoice
					ledger={ledger}
					people={people.filter((id) => id !== eyes.person)}
					readers={readers}
					onChange={(chosen) => setReadersText(writeReaders(chosen))}
				/>
			)}
			<p className={css.send}>
				<Button type="submit" look="primary" blocked={why} isPending={write.isPending}>
					{sendWords(readers, (id) => firstLine(labelOf(ledger, id)))}
				</Button>
				<span className={css.soft} role="status">
					{write.isPending ? waitWords(ledger, eyes) : "Ctrl+Enter. What is written can never be changed or removed."}
				</span>
			</p>
			<Result result={write.data} error={write.error} />
		</form>
	);
}

/** The chosen readers as text. No text means everyone, so a list always has a colon before it. */
function writeReaders(readers: readonly string[] | null): string {
	return readers === null ? "" : `:${readers.join(" ")}`;
}

function readReaders(text: string): readonly string[] | null {
	return text === "" ? null : text.slice(1).split(" ").filter(Boolean);
}

/** Why it takes a while. */
function waitWords(ledger: Ledger, eyes: Eyes): string {
	const hasWriter = eyes.kind === "operator" && ledger.writer !== "silence";
	if (!hasWriter) return "Writing: it is done when the ledger has it on disk.";
	const limit = ledger.limits.writer_seconds;
	return `Waits for the attached writer${limit == null ? "" : `, at most ${limit} s`}. Your words are written in any case.`;
}

function sendWords(readers: readonly string[] | null, label: (id: string) => string): string {
	if (readers === null) return "Write to everyone";
	if (readers.length === 0) return "Write a note to oneself";
	return readers.length > 3 ? `Write to ${readers.length} readers` : `Write to ${joinNames(readers.map(label))}`;
}

function Result({ result, error }: { readonly result: Written | undefined; readonly error: Error | null }) {
	if (error !== null)
		return <ErrorNote context="It was not written, as far as this page knows." error={ledgerError(error)} />;
	if (result === undefined) return null;
	if (result.kind === "refused") {
		const { code, path, words } = result.refusal;
		return (
			<div role="alert" className={css.refusal}>
				<p>
					<strong>The ledger refused it, and nothing was written.</strong> {words}
				</p>
				<p>
					<code>{firstLine(code)}</code> at <code>{firstLine(path)}</code>. Your text is kept above: change it and write
					it again.
				</p>
			</div>
		);
	}
	return result.writerFailure === null ? null : (
		<p role="status" className={css.refusal}>
			Your words were written. The attached writer added nothing, because it failed:{" "}
			{firstLine(result.writerFailure, 300)}
		</p>
	);
}
