/** The audit of one ledger, with the choice of the ledger and of a kind of lines. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { listBindings, useKeys } from "../../components/keys";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { AUDIT_KIND_WORDS, readAuditKind } from "../../model/audit";
import { type AuditTrail, auditRows } from "../../model/audit-trail";
import type { Ledger } from "../../model/ledger";
import { formatNumberOf } from "../../model/quantity";
import { AuditKinds } from "./AuditKinds";
import { AuditList } from "./AuditList";
import { auditQuery, loadEarlier } from "./audit-query";
import { LedgerChoice } from "./LedgerChoice";
import css from "./System.module.css";

export interface AuditOfLedgerProps {
	readonly ledger: Ledger;
	/** All that can be chosen. */
	readonly ledgers: readonly Ledger[];
}

export function AuditOfLedger({ ledger, ledgers }: AuditOfLedgerProps) {
	const { data, error, isPending, refetch } = useQuery(auditQuery(ledger.world_id));
	return (
		<div className={css.audit}>
			<div className={css.tools}>
				<LedgerChoice ledgers={ledgers} value={ledger.world_id} />
				{data !== undefined && <AuditKinds lines={data.lines} />}
			</div>
			{isPending && <Skeleton lines={8} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data?.lines.length === 0 && (
				<EmptyState
					title="No lines yet"
					action={<Link href={paths.ledger(ledger.world_id)}>{`Open the ledger ${ledger.world_id}`}</Link>}
				>
					Each look as a person or as the audit leaves a line here that cannot be removed. So does each change of
					settings, people and tokens, and each proposal that was refused.
				</EmptyState>
			)}
			{data !== undefined && data.lines.length > 0 && <AuditRows ledger={ledger} trail={data} />}
		</div>
	);
}

function AuditRows({ ledger, trail }: { readonly ledger: Ledger; readonly trail: AuditTrail }) {
	const [kindText] = useQueryParam("kind");
	const kind = readAuditKind(kindText);
	const rows = useMemo(() => auditRows(trail, kind), [trail, kind]);
	const frame = useRef<HTMLDivElement>(null);
	useKeys(
		"Audit",
		listBindings(() => frame.current),
	);
	const held = `the newest ${formatNumberOf(trail.lines.length, "line")}`;
	return (
		<>
			<div ref={frame} className={css.auditLines}>
				{rows.length === 0 && kind !== null ? (
					<p className={css.none}>
						{`No line is about ${AUDIT_KIND_WORDS[kind]}${trail.first === 0 ? "" : `, among ${held}`}.`}
					</p>
				) : (
					<AuditList ledger={ledger} rows={rows} />
				)}
			</div>
			{trail.first > 0 && <Earlier world={ledger.world_id} held={held} />}
		</>
	);
}

function Earlier({ world, held }: { readonly world: string; readonly held: string }) {
	const client = useQueryClient();
	const load = useMutation({ mutationFn: () => loadEarlier(client, world) });
	return (
		<div className={css.foot}>
			<span className={css.soft}>{`Shown from ${held}.`}</span>
			<Button isPending={load.isPending} onClick={() => load.mutate()}>
				Read earlier lines
			</Button>
			{load.error !== null && <ErrorNote context="Earlier lines were not read." error={load.error} />}
		</div>
	);
}
