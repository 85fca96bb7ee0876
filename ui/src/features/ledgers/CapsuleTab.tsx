/** What there is to read about a person: verbatim excerpts, each a place in its entry, then perhaps one note. */

import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { listBindings, useKeys } from "../../components/keys";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { type Eyes, eyesQuery, type Ledger } from "../../model/ledger";
import { splitExcerpts } from "../../model/ledger-text";
import type { Schema } from "../../model/schema";
import css from "./Ledgers.module.css";
import { capsuleQuery } from "./ledger-queries";

export interface CapsuleTabProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
	readonly eyes: Eyes;
}

export function CapsuleTab({ world, ledger, person, eyes }: CapsuleTabProps) {
	const { data, error, isPending, refetch } = useQuery(capsuleQuery(world, person, eyes));
	const list = useRef<HTMLUListElement>(null);
	useKeys(
		"Capsule",
		listBindings(() => list.current),
	);
	if (isPending) return <Skeleton lines={6} />;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	const source = data.sections.find(({ name }) => name === "SOURCE_EXCERPTS");
	const derived = data.sections.find(({ name }) => name === "OPTIONAL_DERIVED");
	const ranges = source?.excerpts ?? [];
	const excerpts = splitExcerpts(source?.text ?? "", ranges);
	const reader = eyes.kind === "operator" ? ledger.operator_label : "this reader";
	return (
		<div className={css.page}>
			{ranges.length === 0 ? (
				<EmptyState title="Nothing to read yet">
					{`Entries by or about this person that ${reader} can see would be quoted here.`}
				</EmptyState>
			) : (
				<section aria-label="Excerpts">
					<p className={css.soft}>Entries by or about this person, verbatim. Each opens its entry.</p>
					<ul ref={list} className={css.results}>
						{ranges.map(({ entry_id, start, end }, at) => (
							<li key={`${entry_id} ${start}`} className={css.result}>
								<Link
									href={paths.entry(world, entry_id, { from: start, to: end, ...eyesQuery(eyes) })}
									data-item=""
									data-ref={`entry:${entry_id}`}
									className={css.resultLink}
								>
									<span className={css.excerpt} dir="auto">
										<SafeText text={(excerpts[at] ?? "").slice(0, CHARS_MAX)} />
									</span>
								</Link>
							</li>
						))}
					</ul>
				</section>
			)}
			{derived !== undefined && <Note world={world} eyes={eyes} section={derived} />}
		</div>
	);
}

/** An excerpt is at most so long that its entry shows the rest. */
const CHARS_MAX = 2_048;

/** A note is somebody's summary; it is no evidence, and says so itself. */
function Note({ world, eyes, section }: { world: string; eyes: Eyes; section: Schema<"CapsuleSection"> }) {
	return (
		<section aria-labelledby="note">
			<h2 id="note">Note</h2>
			<p className={css.text} dir="auto">
				<SafeText text={section.text} />
			</p>
			<p className={css.resultHead}>
				<span className={css.soft}>made from</span>
				{section.provenance.used_entry_ids.map((id) => (
					<RefChip key={id} to={{ kind: "entry", id }} href={paths.entry(world, id, eyesQuery(eyes))} />
				))}
			</p>
		</section>
	);
}
