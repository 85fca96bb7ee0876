/** An approval or a question: what will run, and every way to answer it. */

import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import { type AttentionItem, approvalOf } from "../../model/attention";
import { similarApprovals } from "../../model/similar-approvals";
import { approvalsQuery } from "./approvals-query";
import css from "./Inbox.module.css";
import { PermissionForm } from "./PermissionForm";
import { QuestionForm } from "./QuestionForm";
import { ToolDetail } from "./ToolDetail";

export function ApprovalAnswer({ item }: { readonly item: AttentionItem }) {
	const { data: approvals, error, refetch } = useQuery(approvalsQuery());
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	if (approvals === undefined) return <Skeleton lines={2} />;
	const open = approvalOf(item, approvals);
	// The two lists are fetched apart, so one may know of the answer before the other.
	if (open === undefined) return <p className={css.hint}>It has just been answered.</p>;
	const { approval } = open;
	if (approval.kind === "question") return <QuestionForm approval={approval} />;
	return (
		<>
			<ToolDetail tool={approval.tool} />
			{approval.expiresAt != null && (
				<p className={css.hint}>
					Without an answer it is denied <Time at={approval.expiresAt} />.
				</p>
			)}
			<PermissionForm open={open} similar={similarApprovals(open, approvals)} />
		</>
	);
}
