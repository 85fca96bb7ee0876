/** One item: what it is, where it comes from, since when, and the answers to it. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Chip } from "../../components/Chip";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { Time } from "../../components/Time";
import { type AttentionItem, agentName, attentionKindWord, causeOf } from "../../model/attention";
import { ApprovalAnswer } from "./ApprovalAnswer";
import { approvalsQuery } from "./approvals-query";
import css from "./Inbox.module.css";
import { OtherAnswers } from "./OtherAnswers";

export interface InboxItemProps {
	readonly item: AttentionItem;
	readonly runTitle: string | undefined;
	/** Whether the URL names it: then it gets the focus. */
	readonly isNamed: boolean;
}

export function InboxItem({ item, runTitle, isNamed }: InboxItemProps) {
	const frame = useRef<HTMLLIElement>(null);
	useEffect(() => {
		if (isNamed) frame.current?.focus();
	}, [isNamed]);
	const { data: open = [] } = useQuery(approvalsQuery());
	const isApproval = item.kind === "approval" || item.kind === "question";
	return (
		<li
			ref={frame}
			className={css.item}
			data-item=""
			data-ref={causeOf(item, open)}
			// `j`, `k` and links to an item move the focus here; Tab goes on to its buttons.
			tabIndex={-1}
			aria-label={`${attentionKindWord(item.kind)}: ${item.summary}`}
		>
			<div className={css.head}>
				<Chip tone={item.kind === "finished" ? "accent" : "waiting"}>{attentionKindWord(item.kind)}</Chip>
				<RefChip to={`run:${item.runId}`} {...(runTitle === undefined ? {} : { name: runTitle })} />
				{item.nodeId != null && <RefChip to={`node:${item.nodeId}`} name={agentName(item)} />}
				<span className={css.age}>
					<Time at={item.since} />
				</span>
			</div>
			<p className={css.summary}>
				<SafeText text={item.summary} escapes="strip" />
			</p>
			{isApproval ? <ApprovalAnswer item={item} /> : <OtherAnswers item={item} />}
		</li>
	);
}
