/**
 * An object by its ref: icon, short name, state. Hover or focus shows a card, a click opens it, Alt-click or `w` shows why
 * it is there.
 *
 * A name that is known costs nothing: pass it. Untrusted names are shown safely.
 */

import { PreviewCard } from "@base-ui/react/preview-card";
import type { MouseEvent, ReactNode } from "react";
import { Link } from "wouter";
import { pathOfRef } from "../../app/paths";
import { formatRef, hasChain, parseRef, type Ref, refKindWord, shortRefName } from "../../model/refs";
import { firstLine } from "../../model/text-safety";
import { Icon } from "../Icon";
import { SafeText } from "../SafeText";
import { RefCard } from "./RefCard";
import css from "./RefChip.module.css";
import { REF_ICONS } from "./ref-icon";
import { explain } from "./why-store";

export interface RefChipProps {
	/** A ref, or its text as the API gives it. */
	readonly to: Ref | string;
	/** A better name than the id: a label, a title. */
	readonly name?: string | undefined;
	/** `<StateWord …/>`, where the object has a state. */
	readonly state?: ReactNode;
	/** What the card says besides the kind and the ref. */
	readonly card?: ReactNode;
	/** Opens another place than the object's own, such as a run's graph with the object selected. */
	readonly href?: string | undefined;
}

const NAME_CHARS_MAX = 48;

export function RefChip({ to, name, state, card, href }: RefChipProps) {
	const ref = typeof to === "string" ? parseRef(to) : to;
	// A newer server may have kinds that this page cannot open.
	if (ref === null) return <code>{typeof to === "string" && <SafeText text={to} />}</code>;
	const shown = firstLine(name ?? shortRefName(ref), NAME_CHARS_MAX);
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
				aria-label={`${refKindWord(ref.kind)} ${shown}`}
				// Links ignore a click with Alt, so it is caught before.
				onClickCapture={onClick}
			>
				<Icon name={REF_ICONS[ref.kind]} size={14} />
				<span className={css.name}>{shown}</span>
				{state}
			</PreviewCard.Trigger>
			<PreviewCard.Portal>
				<PreviewCard.Positioner sideOffset={6} className={css.positioner}>
					<PreviewCard.Popup className={css.card}>
						<RefCard to={ref} name={name}>
							{card}
						</RefCard>
					</PreviewCard.Popup>
				</PreviewCard.Positioner>
			</PreviewCard.Portal>
		</PreviewCard.Root>
	);
}
