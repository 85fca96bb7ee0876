/** The rules that answer approvals, made by wider answers in the inbox. A deleted rule asks again. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { type Column, DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import type { Schema } from "../../model/schema";

type RuleOfRun = Schema<"RuleOfRun">;

export function ApprovalRules() {
	const { data, error, isPending } = useQuery({
		queryKey: keys.rules(),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/rules", { signal }))).rules,
	});
	return (
		<Card title="Rules that answer approvals">
			{isPending && <Skeleton lines={2} />}
			{error !== null && <ErrorNote error={error} />}
			{data?.length === 0 && <p>There is none. “Approve for longer” in the inbox makes one.</p>}
			{data !== undefined && data.length > 0 && (
				<DataTable label="Rules" columns={COLUMNS} rows={data} rowKey={({ rule }) => rule.id} />
			)}
		</Card>
	);
}

const COLUMNS: readonly Column<RuleOfRun>[] = [
	{ id: "what", header: "Approves", minWidth: 200, grow: 1, cell: ({ rule }) => <SafeText text={ruleWords(rule)} /> },
	{ id: "run", header: "In", minWidth: 140, cell: ({ runId, rule }) => <RuleScope run={runId} rule={rule} /> },
	{ id: "made", header: "Made", minWidth: 90, drop: 1, cell: ({ rule }) => <Time at={rule.createdAt} /> },
	{ id: "delete", header: "Delete", minWidth: 80, cell: ({ rule }) => <DeleteRule id={rule.id} /> },
];

function RuleScope({ run, rule }: { readonly run: string; readonly rule: RuleOfRun["rule"] }) {
	return rule.nodeId == null ? <RefChip to={`run:${run}`} /> : <RefChip to={`node:${rule.nodeId}`} />;
}

function ruleWords(rule: RuleOfRun["rule"]): string {
	if (rule.commandPrefix != null) return `${rule.tool}: commands that begin with “${rule.commandPrefix}”`;
	return `${rule.tool}: the file ${rule.path ?? ""}`;
}

function DeleteRule({ id }: { readonly id: string }) {
	const client = useQueryClient();
	const block = useActionBlock();
	const remove = useMutation({
		mutationFn: () => answer(api.DELETE("/api/rules/{id}", { params: { path: { id } } })),
		onSettled: () => void client.invalidateQueries({ queryKey: keys.rules() }),
	});
	return (
		<>
			<Button look="quiet" blocked={block} isPending={remove.isPending} onClick={() => remove.mutate()}>
				Delete
			</Button>
			{remove.error !== null && <ErrorNote error={remove.error} />}
		</>
	);
}
