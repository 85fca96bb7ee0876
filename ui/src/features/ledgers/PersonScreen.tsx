import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearch } from "wouter";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { LinkTabs } from "../../components/Tabs";
import { type Eyes, type Ledger, labelOf } from "../../model/ledger";
import { AccessTab } from "./AccessTab";
import { CapsuleTab } from "./CapsuleTab";
import { CompareTab } from "./CompareTab";
import { EyesBar } from "./EyesBar";
import { EyesMenu } from "./EyesMenu";
import { KnewTab } from "./KnewTab";
import { LedgerFault } from "./LedgerFault";
import { ledgerQuery } from "./ledger-queries";
import { PersonDialog } from "./PersonDialog";
import { PersonLine } from "./PersonLine";
import { useEyes } from "./useEyes";
import { usePeople } from "./usePeople";

const TABS = ["capsule", "knew", "compare", "access"] as const;
type Tab = (typeof TABS)[number];
const TAB_WORDS: Record<Tab, string> = {
	capsule: "Capsule",
	knew: "What they knew",
	compare: "Compare two",
	access: "Access",
};
const AUDIT: Eyes = { kind: "audit" };

/** A person: what there is to read about them, what they could see, and how their agent gets in. */
export default function PersonScreen({ params: { world, person } }: ScreenProps<"world" | "person">) {
	const { data: ledger, error, isPending, refetch } = useQuery(ledgerQuery(world));
	const people = usePeople(world, ledger);
	const [wanted, setEyes] = useEyes();
	const [isChanging, setChanging] = useState(false);
	const tab = readTab(useSearch());
	const eyes = eyesOf(tab, wanted);
	const label = labelOf(ledger, person);
	const known = ledger?.persons.find(({ person_id }) => person_id === person) ?? null;
	return (
		<Page
			title={label}
			crumbs={[
				{ label: "Ledgers", href: paths.ledgers() },
				{ label: world, href: paths.ledger(world) },
				{ label: "People", href: paths.people(world) },
			]}
			actions={
				<>
					{tab === "capsule" && <EyesMenu eyes={eyes} ledger={ledger} people={people} onChange={setEyes} />}
					{known !== null && <Button onClick={() => setChanging(true)}>Change…</Button>}
				</>
			}
			bar={
				<LinkTabs
					label="Parts of the person"
					current={tab}
					tabs={TABS.map((id) => ({ id, label: TAB_WORDS[id], href: paths.person(world, person, { tab: id }) }))}
				/>
			}
		>
			<EyesBar eyes={eyes} ledger={ledger} back={paths.person(world, person)} shows={showsOf(tab, label)} />
			{isPending && <Skeleton lines={6} />}
			{error !== null && ledger === undefined && (
				<LedgerFault world={world} error={error} onRetry={() => void refetch()} />
			)}
			{ledger !== undefined && (
				<>
					<PersonLine world={world} ledger={ledger} person={person} known={known} />
					<TabContent tab={tab} world={world} ledger={ledger} person={person} people={people} eyes={eyes} />
				</>
			)}
			{isChanging && known !== null && <PersonDialog world={world} person={known} onClose={() => setChanging(false)} />}
		</Page>
	);
}

interface TabContentProps {
	readonly tab: Tab;
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
	readonly people: readonly string[];
	readonly eyes: Eyes;
}

function TabContent({ tab, world, ledger, person, people, eyes }: TabContentProps) {
	switch (tab) {
		case "capsule":
			return <CapsuleTab world={world} ledger={ledger} person={person} eyes={eyes} />;
		case "knew":
			return <KnewTab world={world} ledger={ledger} person={person} />;
		case "compare":
			return <CompareTab world={world} ledger={ledger} person={person} people={people} />;
		case "access":
			return <AccessTab world={world} ledger={ledger} person={person} />;
	}
}

function readTab(search: string): Tab {
	const wanted = new URLSearchParams(search).get("tab");
	return TABS.find((tab) => tab === wanted) ?? "capsule";
}

/** Another person's view is not the operator's, so looking at it is an audit. */
function eyesOf(tab: Tab, wanted: Eyes): Eyes {
	if (tab === "knew" || tab === "compare") return AUDIT;
	return tab === "capsule" ? wanted : { kind: "operator" };
}

function showsOf(tab: Tab, label: string): string {
	switch (tab) {
		case "knew":
			return `what ${label} could see`;
		case "compare":
			return `what ${label} and another could not both see`;
		case "capsule":
		case "access":
			return `the capsule with the eyes of ${label}`;
	}
}
