/** The inbox without items: what runs now, or the ways to begin. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { runsQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { CommandLine, EmptyState } from "../../components/EmptyState";
import { RefChip } from "../../components/refs/RefChip";
import { useQueryParam } from "../../components/useQueryParam";
import css from "./Inbox.module.css";

export function EmptyInbox({ isFiltered }: { readonly isFiltered: boolean }) {
	const { data: runs } = useQuery(runsQuery());
	if (isFiltered) return <NothingFits />;
	if (runs === undefined) return null;
	if (runs.length === 0) return <FirstVisit />;
	const active = runs.filter((run) => run.status === "running" || run.status === "queued");
	return (
		<EmptyState title="Nothing waits for you">
			{active.length === 0 ? (
				<p>
					No run is active. <Link href={paths.newRun()}>Start a run</Link>
				</p>
			) : (
				<>
					<p>These runs go on:</p>
					<ul className={css.active}>
						{active.map((run) => (
							<li key={run.id}>
								<RefChip to={`run:${run.id}`} name={run.title} /> {agentsAtWork(run.runningCount)}
							</li>
						))}
					</ul>
				</>
			)}
		</EmptyState>
	);
}

function agentsAtWork(count: number): string {
	if (count === 0) return "no agent works now";
	return count === 1 ? "1 agent works" : `${count} agents work`;
}

function NothingFits() {
	const [, setKind] = useQueryParam("kind");
	const [, setRun] = useQueryParam("run");
	const showAll = () => {
		setKind(null);
		setRun(null);
	};
	return <EmptyState title="Nothing fits these filters" action={<Button onClick={showAll}>Show everything</Button>} />;
}

/** What a newcomer sees first. */
function FirstVisit() {
	return (
		<div className={css.doors}>
			<p>Questions and approvals of your agents will wait here. Three ways to begin, and a demo:</p>
			<section>
				<h2>
					<Link href={paths.newRun()}>Start a run</Link>
				</h2>
				<p>Give one agent or a team a goal in a folder. They ask you before they act.</p>
			</section>
			<section>
				<h2>
					<Link href={paths.sessions()}>Wrap a terminal</Link>
				</h2>
				<p>Use your agent as before. Turnkeep captures each finished turn.</p>
				<CommandLine command="turnkeep wrap -- claude" />
			</section>
			<section>
				<h2>
					<Link href={paths.ledgers()}>Open a ledger</Link>
				</h2>
				<p>Give a team of agents one history that they can cite and never change.</p>
			</section>
			<section>
				<h2>Show me the demo</h2>
				<p>Scripted agents work on a small repository. It needs no key, and a tour of seven steps explains it.</p>
				<CommandLine command="turnkeep up --demo" />
			</section>
		</div>
	);
}
