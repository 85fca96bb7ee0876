import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { useQueryParam } from "../../components/useQueryParam";
import type { Ledger } from "../../model/ledger";
import type { Schema } from "../../model/schema";
import { LedgerFault } from "./LedgerFault";
import css from "./Ledgers.module.css";
import { LedgerTabs } from "./LedgerTabs";
import { ledgerQuery } from "./ledger-queries";
import { PeopleTable } from "./PeopleTable";
import { PersonDialog } from "./PersonDialog";
import { usePeople } from "./usePeople";

/** The people of a ledger. */
export default function PeopleScreen({ params: { world } }: ScreenProps<"world">) {
	const { data: ledger, error, isPending, refetch } = useQuery(ledgerQuery(world));
	const [isNew, setNew] = useQueryParam("new");
	const add = (
		<Button look="primary" onClick={() => setNew("1")}>
			Add a person
		</Button>
	);
	const people = rowsOf(ledger, usePeople(world, ledger));
	const isEmpty = people.length === 0 && ledger !== undefined;
	return (
		<Page
			title={`People of ${world}`}
			crumbs={[
				{ label: "Ledgers", href: paths.ledgers() },
				{ label: world, href: paths.ledger(world) },
			]}
			actions={isEmpty || ledger === undefined ? undefined : add}
			bar={<LedgerTabs world={world} current="people" ledger={ledger} eyes={{ kind: "operator" }} />}
		>
			{isPending && <Skeleton lines={4} />}
			{error !== null && ledger === undefined && (
				<LedgerFault world={world} error={error} onRetry={() => void refetch()} />
			)}
			{isEmpty && (
				<EmptyState
					title="Connect an agent"
					action={add}
					command={`turnkeep world person ${world} add CODER\nturnkeep world token ${world} CODER --write --mcp claude`}
				>
					Everyone who may write here and be written to would be a line here. Add a person, make a token on its page,
					and paste the line that connects the agent.
				</EmptyState>
			)}
			{ledger !== undefined && !isEmpty && (
				<>
					<PeopleTable world={world} people={people} />
					<p className={css.after}>
						You are <Link href={paths.ledger(world)}>{ledger.operator_label}</Link> here.{" "}
						{ledger.registry === "OPEN"
							? "Anyone whose name is used takes part; those who were not added are known by their id alone."
							: "Only these people take part; other names are refused."}
					</p>
				</>
			)}
			{isNew === "1" && <PersonDialog world={world} person={null} onClose={() => setNew(null)} />}
		</Page>
	);
}

/** Those who were added, with what is known about them, and those whose names entries use. */
function rowsOf(ledger: Ledger | undefined, people: readonly string[]): readonly Schema<"Person">[] {
	const added = ledger?.persons ?? [];
	return people.map((id) => added.find(({ person_id }) => person_id === id) ?? { person_id: id });
}
