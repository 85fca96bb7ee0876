/** A handoff: its message, what it carries, and how it stands. */

import { JsonView } from "../../../components/JsonView";
import { Markdown } from "../../../components/Markdown";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import type { Envelope, EnvelopeState } from "../../../model/run";
import css from "./Timeline.module.css";

/** Messages longer than this are folded. */
const FOLD_CHARS = 1_200;

export function HandoffState({ state }: { readonly state: EnvelopeState }) {
	switch (state.kind) {
		case "queued":
			return (
				<StateWord tone="neutral" word="queued">
					waits in the inbox
				</StateWord>
			);
		case "held":
			return (
				<StateWord tone="waiting" word="held">
					until the sender’s work is verified
				</StateWord>
			);
		case "consumed":
			return <StateWord tone="done" word="read" />;
		case "refused":
			return (
				<StateWord tone="failed" word="refused">
					<SafeText text={state.reason} escapes="strip" />
				</StateWord>
			);
	}
}

export interface HandoffBodyProps {
	readonly envelope: Envelope;
	readonly isOpen: boolean;
	readonly onToggle: (isOpen: boolean) => void;
}

export function HandoffBody({ envelope, isOpen, onToggle }: HandoffBodyProps) {
	const { payload, meta, contextRef } = envelope;
	const { structured, artifacts, status, response } = payload;
	const isLong = payload.message.length > FOLD_CHARS;
	return (
		<>
			<Markdown text={isLong && !isOpen ? `${payload.message.slice(0, FOLD_CHARS)}…` : payload.message} />
			{structured != null && isOpen && <JsonView value={structured} label="Values" />}
			<p className={css.facts}>
				{status != null && <Outcome ok={status.ok} reason={status.reason ?? null} />}
				{response.expectation === "required" && <span>expects a reply</span>}
				{response.expectation === "optional" && <span>may be replied to</span>}
				{response.replyTo != null && (
					<span>
						replies to <RefChip to={{ kind: "envelope", id: response.replyTo }} />
					</span>
				)}
				{meta?.synthesized === true && <span>written by the server in the sender’s place</span>}
				{contextRef != null && <RefChip to={contextRef} />}
				{artifacts.map(({ ref, type }) => (
					<RefChip key={ref} to={ref} {...(type == null ? {} : { name: type })} />
				))}
				{(isLong || structured != null) && (
					<button type="button" className={css.more} aria-expanded={isOpen} onClick={() => onToggle(!isOpen)}>
						{isOpen ? "Show less" : structured == null ? "Show all" : "Show all with its values"}
					</button>
				)}
			</p>
		</>
	);
}

function Outcome({ ok, reason }: { readonly ok: boolean; readonly reason: string | null }) {
	const word = ok ? "succeeded" : "failed";
	if (reason === null) return <StateWord tone={ok ? "done" : "failed"} word={word} />;
	return (
		<StateWord tone={ok ? "done" : "failed"} word={word}>
			<SafeText text={reason} escapes="strip" />
		</StateWord>
	);
}
