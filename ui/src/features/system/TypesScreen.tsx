/** The types that turns and records are written with: all of them, or one with its versions side by side. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { typesQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { firstLine } from "../../model/text-safety";
import { SystemFrame } from "./SystemFrame";
import { TypeList } from "./TypeList";
import { TypeVersions } from "./TypeVersions";

export default function TypesScreen() {
	const { data, error, isPending, refetch } = useQuery(typesQuery());
	const [id] = useQueryParam("id");
	const type = data?.find(({ type_id }) => type_id === id);
	return (
		<SystemFrame page="types" {...(id === null ? {} : { object: firstLine(id) })}>
			{isPending && <Skeleton lines={8} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && id === null && <TypeList types={data} />}
			{data !== undefined && id !== null && type === undefined && <NoType id={id} />}
			{data !== undefined && type !== undefined && <TypeVersions key={type.type_id} type={type} types={data} />}
		</SystemFrame>
	);
}

function NoType({ id }: { readonly id: string }) {
	return (
		<EmptyState title="Not found" action={<Link href={paths.system("types")}>All types</Link>}>
			{`The type ${firstLine(id)} was not published here. Its turns are kept all the same, and shown as bytes.`}
		</EmptyState>
	);
}
