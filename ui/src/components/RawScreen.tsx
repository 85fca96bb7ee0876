/** An answer of the server as it came: for screens that show no more than that, and beside those that do. */

import { useQuery } from "@tanstack/react-query";
import { isNotFound } from "../api/errors";
import { request } from "../api/http";
import { EmptyState } from "./EmptyState";
import { ErrorNote } from "./ErrorNote";
import { JsonView } from "./JsonView";
import { Page, type PageProps } from "./Page";
import { MachineText } from "./SafeText";
import { Skeleton } from "./Skeleton";

export interface RawScreenProps extends Omit<PageProps, "children"> {
	/** The route of the API. */
	readonly source: string;
	readonly queryKey: readonly (string | number)[];
}

export function RawScreen({ source, queryKey, ...page }: RawScreenProps) {
	return (
		<Page {...page}>
			<RawAnswer source={source} queryKey={queryKey} />
		</Page>
	);
}

function RawAnswer({ source, queryKey }: Pick<RawScreenProps, "source" | "queryKey">) {
	const { data, error, isPending, refetch } = useQuery({
		queryKey: [...queryKey, "raw", source],
		queryFn: async ({ signal }) => {
			const response = await request(source, { signal });
			const isJson = response.headers.get("content-type")?.includes("json") ?? false;
			return isJson ? { json: (await response.json()) as unknown } : { text: await response.text() };
		},
	});
	if (isPending) return <Skeleton lines={8} />;
	if (isNotFound(error)) return <EmptyState title="Not found">It may have been deleted.</EmptyState>;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	return "json" in data ? <JsonView value={data.json} /> : <MachineText text={data.text} />;
}
