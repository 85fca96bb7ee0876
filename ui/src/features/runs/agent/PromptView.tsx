/** A turn's prompt: its blocks, the text that was sent, and the full text that stands for it. */

import { CopyButton } from "../../../components/CopyButton";
import { ErrorNote } from "../../../components/ErrorNote";
import { RefChip } from "../../../components/refs/RefChip";
import { Skeleton } from "../../../components/Skeleton";
import { StateWord } from "../../../components/StateWord";
import { Segments } from "../../../components/Tabs";
import { useQueryParam } from "../../../components/useQueryParam";
import type { AgentTurn } from "../../../model/agent-turns";
import { type PromptBlock, readPromptBlocks } from "../../../model/prompt-blocks";
import { formatNumberOf } from "../../../model/quantity";
import type { Artifact } from "../../../model/run";
import { useArtifactText } from "./artifacts";
import { LongText } from "./LongText";
import css from "./Prompt.module.css";

const VIEWS = [
	{ value: "blocks", label: "Blocks" },
	{ value: "sent", label: "As sent" },
	{ value: "full", label: "Full text" },
] as const;
type PromptPart = (typeof VIEWS)[number]["value"];

export function PromptView({ turn }: { readonly turn: AgentTurn }) {
	const [part, setPart] = useQueryParam("part");
	const shown = VIEWS.find(({ value }) => value === part)?.value ?? "blocks";
	return (
		<section className={css.prompt} aria-label="Prompt">
			<div className={css.head}>
				<Segments<PromptPart>
					label="What of the prompt"
					value={shown}
					options={VIEWS}
					onChange={(value) => setPart(value === "blocks" ? null : value)}
				/>
				<p className={css.soft}>{kindWords(turn)}</p>
			</div>
			<PromptPartView part={shown} turn={turn} />
		</section>
	);
}

function kindWords(turn: AgentTurn): string {
	switch (turn.promptKind) {
		case "delta":
			return "A delta: only the mode and the task were sent, because the session knew the rest.";
		case "full":
			return "A full prompt: the session knew nothing yet, or its instructions had changed.";
		case null:
			return "It is being prepared.";
	}
}

function PromptPartView({ part, turn }: { readonly part: PromptPart; readonly turn: AgentTurn }) {
	switch (part) {
		case "blocks":
			return <Blocks artifact={turn.promptBlocks} />;
		// A full prompt was sent as it is, so it is kept once.
		case "sent":
			return <PromptText artifact={turn.promptSent ?? turn.promptFull} />;
		case "full":
			return <PromptText artifact={turn.promptFull} />;
	}
}

function PromptText({ artifact }: { readonly artifact: Artifact | null }) {
	const { data, error, isPending, refetch } = useArtifactText(artifact);
	if (artifact === null) return <p>There is no such text of this turn.</p>;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	if (isPending) return <Skeleton lines={8} />;
	return (
		<article className={css.block}>
			<header className={css.blockHead}>
				<RefChip to={{ kind: "artifact", id: artifact.id }} name={artifact.name} />
				<span className={css.soft}>{formatNumberOf(data.length, "character")}</span>
				<CopyButton text={data} label="Copy the text" />
			</header>
			<LongText text={data} />
		</article>
	);
}

function Blocks({ artifact }: { readonly artifact: Artifact | null }) {
	const { data, error, isPending, refetch } = useArtifactText(artifact);
	if (artifact === null) return <p>The blocks of this prompt are not known.</p>;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	if (isPending) return <Skeleton lines={8} />;
	const read = readPromptBlocks(data);
	if (read === null) return <LongText text={data} />;
	return read.blocks.map((block) => <Block key={block.name} block={block} />);
}

function Block({ block }: { readonly block: PromptBlock }) {
	return (
		<article className={css.block}>
			<header className={css.blockHead}>
				<h2 className={css.name}>{block.title}</h2>
				{block.isSent ? (
					<StateWord tone="done" word="sent" />
				) : (
					<StateWord tone="neutral" word="not sent again">
						the session knew it
					</StateWord>
				)}
				<span className={css.soft}>{formatNumberOf(block.text.length, "character")}</span>
				<CopyButton text={block.text} label="Copy the block" />
			</header>
			<div className={block.isSent ? undefined : css.known}>
				<LongText text={block.text} />
			</div>
		</article>
	);
}
