/** The rows of an audit. A row opens to what the server recorded. */

import { useState } from "react";
import { IconButton } from "../../components/Button";
import { JsonView } from "../../components/JsonView";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { Time } from "../../components/Time";
import { VirtualList } from "../../components/VirtualList";
import { AUDIT_KIND_WORDS, type AuditPiece, labelledDetails, readPrincipal } from "../../model/audit";
import type { AuditRow } from "../../model/audit-trail";
import { isPersonId, type Ledger, labelOf } from "../../model/ledger";
import { formatNumberOf } from "../../model/quantity";
import css from "./System.module.css";

/** The details of so many lines of one row are shown. */
const LINES_MAX = 20;

export function AuditList({ ledger, rows }: { readonly ledger: Ledger; readonly rows: readonly AuditRow[] }) {
	const [open, setOpen] = useState<number | null>(null);
	return (
		<VirtualList
			label="Lines of the audit"
			items={rows}
			itemKey={numberOf}
			estimate={33}
			renderItem={(row) => {
				const isOpen = numberOf(row) === open;
				return (
					<AuditItem
						ledger={ledger}
						row={row}
						isOpen={isOpen}
						onToggle={() => setOpen(isOpen ? null : numberOf(row))}
					/>
				);
			}}
		/>
	);
}

/** A row is named by its oldest line: newer ones may still join it. */
function numberOf({ lines }: AuditRow): number {
	return (lines.at(-1) ?? lines[0]).number;
}

interface AuditItemProps {
	readonly ledger: Ledger;
	readonly row: AuditRow;
	readonly isOpen: boolean;
	readonly onToggle: () => void;
}

function AuditItem({ ledger, row, isOpen, onToggle }: AuditItemProps) {
	const [{ line }] = row.lines;
	const hidden = row.lines.length - LINES_MAX;
	return (
		<div className={css.line}>
			<div className={css.lineHead}>
				<span className={css.soft}>{line.at == null ? "no time" : <Time at={line.at} />}</span>
				<p className={css.lineText}>
					<Who ledger={ledger} principal={row.principal} />{" "}
					{row.said.map((piece) => (
						<Piece key={JSON.stringify(piece)} ledger={ledger} piece={piece} />
					))}
					{row.lines.length > 1 && (
						<span className={css.soft}>{` · ${formatNumberOf(row.lines.length, "request")}`}</span>
					)}
				</p>
				<span className={css.lineKind}>{AUDIT_KIND_WORDS[row.kind]}</span>
				<IconButton
					icon={isOpen ? "down" : "right"}
					label={`What was recorded in line ${numberOf(row) + 1}`}
					aria-expanded={isOpen}
					data-item=""
					onClick={onToggle}
				/>
			</div>
			{isOpen && (
				<ul className={css.details}>
					{row.lines.slice(0, LINES_MAX).map(({ number, line: each }) => (
						<li key={number}>
							<p className={css.soft}>
								{`Line ${number + 1}, `}
								{each.at == null ? "no time" : <Time at={each.at} format="exact" />}
								{each.request_id != null && (
									<>
										, request <SafeText text={each.request_id} />
									</>
								)}
							</p>
							<JsonView
								value={labelledDetails(each.details, ledger.operator_label)}
								label={`Details of line ${number + 1}`}
							/>
						</li>
					))}
					{hidden > 0 && (
						<li className={css.soft}>{`${formatNumberOf(hidden, "earlier request")} of the same kind`}</li>
					)}
				</ul>
			)}
		</div>
	);
}

function Who({ ledger, principal }: { readonly ledger: Ledger; readonly principal: string }) {
	const who = readPrincipal(principal);
	switch (who.kind) {
		case "owner":
			return (
				<strong>
					<SafeText text={ledger.operator_label} />
				</strong>
			);
		case "system":
			return <strong>Turnkeep</strong>;
		case "writer":
			return <strong>The attached writer</strong>;
		case "person":
			return <PersonChip ledger={ledger} person={who.person} />;
		case "unknown":
			return (
				<strong>
					<SafeText text={who.text} />
				</strong>
			);
	}
}

function Piece({ ledger, piece }: { readonly ledger: Ledger; readonly piece: AuditPiece }) {
	if (typeof piece === "string") return <SafeText text={piece} />;
	if ("ledger" in piece) return <RefChip to={{ kind: "world", name: piece.ledger }} />;
	return <PersonChip ledger={ledger} person={piece.person} />;
}

/** The operator and the ledger's own voice have no page. */
function PersonChip({ ledger, person }: { readonly ledger: Ledger; readonly person: string }) {
	const name = labelOf(ledger, person);
	if (!isPersonId(person)) return <SafeText text={name} />;
	return <RefChip to={{ kind: "person", world: ledger.world_id, id: person }} name={name} />;
}
