/** The two places from which assistive technology reads what `announce` says. */

import { useEffect, useRef } from "react";
import { useStore } from "zustand";
import { useAttention } from "../api/waiting";
import { announce, announcements } from "../components/announce";
import { type AttentionItem, newItems } from "../model/attention";
import { formatNumberOf } from "../model/quantity";
import { firstLine } from "../model/text-safety";

export function LiveRegions() {
	const { polite, assertive } = useStore(announcements);
	useAnnouncedInbox();
	return (
		<>
			{/* The number makes the same text a new one, which is read again. */}
			<div className="visually-hidden" role="status" aria-live="polite">
				<span key={polite.number}>{polite.text}</span>
			</div>
			<div className="visually-hidden" role="alert" aria-live="assertive">
				<span key={assertive.number}>{assertive.text}</span>
			</div>
		</>
	);
}

function useAnnouncedInbox(): void {
	const { data } = useAttention();
	const before = useRef<readonly AttentionItem[] | null>(null);
	useEffect(() => {
		if (data === undefined) return;
		const added = before.current === null ? [] : newItems(before.current, data);
		before.current = data;
		const [first, ...others] = added;
		if (first === undefined) return;
		const more = others.length === 0 ? "" : `, and ${formatNumberOf(others.length, "more item")}`;
		announce(`New in the inbox: ${firstLine(first.summary)}${more}`);
	}, [data]);
}
