/**
 * An object by its ref: icon, short name, state. Hover or focus shows a card, a click opens it, Alt-click or `w` shows why
 * it is there.
 *
 * A name that is known costs nothing: pass it. Untrusted names are shown safely. Without one, runs, sessions and agents are
 * looked up.
 */

import { PreviewCard } from "@base-ui/react/preview-card";
import type { MouseEvent } from "react";
import { Link } from "wouter";
import { pathOfRef } from "../../app/paths";
import { formatRef, hasChain, parseRef, type Ref, refKindWord, shortRefName } from "../../model/refs";
import { firstLine } from "../../model/text-safety";
import { Icon } from "../Icon";
import { SafeText } from "../SafeText";
import { StateWord } from "../StateWord";
import { RefCard } from "./RefCard";
import css from "./RefChip.module.css";
import { REF_ICONS } from "./ref-icon";
import { useRefName } from "./useRefName";
import { type RefState, useRefState } from "./useRefState";
import { explain } from "./why-store";

export interface RefChipProps {
	/** A ref, or its text as the API gives it. */
	readonly to: Ref | string;
	/** A better name than the id: a label, a title. */
	readonly name?: string | undefined;
	/** Its state, if the chip cannot know it: runs and sessions show their own. */
	readonly state?: RefState | null;
	/** Opens another place than the object's own, such as a run's graph with the object selected. */
	readonly href?: string | undefined;
}

const NAME_CHARS_MAX = 48;

export function RefChip({ to, name, state = null, href }: RefChipProps) {
	const ref = typeof to === "string" ? parseRef(to) : to;
	const shownState = useRefState(ref) ?? state;
	const known = useRefName(ref, name);
	// A newer server may have kinds that this page cannot open.
	if (ref === null) return <code>{typeof to === "string" && <SafeText text={to} />}</code>;
	const shown = firstLine(known ?? shortRefName(ref), NAME_CHARS_MAX);
	const onClick = (event: MouseEvent) => {
		if (!event.altKey || !hasChain(ref)) return;
		event.preventDefault();
		explain(formatRef(ref));
	};
	return (
		<PreviewCard.Root>
			<PreviewCard.Trigger
				render={<Link href={href ?? pathOfRef(ref)} />}
				className={css.chip}
				data-ref={formatRef(ref)}
				aria-label={`${refKindWord(ref.kind)} ${shown}${shownState === null ? "" : `, ${shownState.word}`}`}
				// Links ignore a click with Alt, so it is caught before.
				onClickCapture={onClick}
			>
				<Icon name={REF_ICONS[ref.kind]} size={14} />
				<span className={css.name}>{shown}</span>
				{shownState !== null && <StateWord tone={shownState.tone} word={shownState.word} />}
			</PreviewCard.Trigger>
			<PreviewCard.Portal>
				<PreviewCard.Positioner sideOffset={6} className={css.positioner}>
					<PreviewCard.Popup className={css.card}>
						<RefCard to={ref} name={known ?? undefined} />
					</PreviewCard.Popup>
				</PreviewCard.Positioner>
			</PreviewCard.Portal>
		</PreviewCard.Root>
	);
}
