/** Approvals that a person would answer in the same way: the same tool with the same command or file, in the same run. */

import { futureRule } from "./approval-rule";
import type { Schema } from "./schema";

/** An approval that waits, and its run. */
export type OpenApproval = Schema<"ApprovalOfRun">;

export function similarApprovals(one: OpenApproval, all: readonly OpenApproval[]): OpenApproval[] {
	const rule = futureRule(one.approval.tool.args);
	if (rule.kind === "none") return [];
	const isSimilar = (other: OpenApproval) =>
		other.approval.approvalId !== one.approval.approvalId &&
		other.runId === one.runId &&
		other.approval.kind === one.approval.kind &&
		other.approval.tool.name === one.approval.tool.name &&
		JSON.stringify(futureRule(other.approval.tool.args)) === JSON.stringify(rule);
	return all.filter(isSimilar);
}
