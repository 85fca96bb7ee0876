import { useQuery } from "@tanstack/react-query";
import { useSearch } from "wouter";
import { paths } from "../../app/paths";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { ComparedTurns } from "./ComparedTurns";
import { CompareForm } from "./CompareForm";
import { lineageQuery } from "./lineage";

/** Two histories side by side from their common turn. */
export default function CompareScreen() {
	const query = new URLSearchParams(useSearch());
	const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
	const isChosen = a !== "" && b !== "";
	return (
		<Page
			title={isChosen ? `Histories ${a} and ${b}` : "Compare histories"}
			crumbs={[{ label: "History", href: paths.histories() }]}
			isFull={isChosen}
			bar={<CompareForm key={`${a} ${b}`} a={a} b={b} />}
		>
			{isChosen ? <Compared a={a} b={b} /> : <p>Choose two histories that share their first turns.</p>}
		</Page>
	);
}

function Compared({ a, b }: { readonly a: string; readonly b: string }) {
	const left = useQuery(lineageQuery(a));
	const right = useQuery(lineageQuery(b));
	const failed = left.error !== null ? { id: a, query: left } : right.error !== null ? { id: b, query: right } : null;
	if (failed !== null) {
		const retry = () => void failed.query.refetch();
		return <ErrorNote context={`History ${failed.id} cannot be read.`} error={failed.query.error} onRetry={retry} />;
	}
	if (left.data === undefined || right.data === undefined) return <Skeleton lines={10} />;
	return <ComparedTurns a={left.data} b={right.data} />;
}
