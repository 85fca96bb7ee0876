/** `/go/REF`: finds where a ref is shown and goes there. Says what the ref was if nothing has it. */

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { navigate } from "wouter/use-browser-location";
import { EmptyState } from "../components/EmptyState";
import { ErrorNote } from "../components/ErrorNote";
import { Page } from "../components/Page";
import { WhyChain } from "../components/refs/WhyPanel";
import { SafeText } from "../components/SafeText";
import { Skeleton } from "../components/Skeleton";
import type { ScreenProps } from "../components/screen";
import { hasChain, parseRef, refKindWord } from "../model/refs";
import { resolveRef } from "./resolve-ref";

export default function GoScreen({ params }: ScreenProps<"ref">) {
	const ref = parseRef(params.ref);
	const { data, error, isPending, refetch } = useQuery({
		queryKey: ["go", params.ref],
		queryFn: ({ signal }) => (ref === null ? null : resolveRef(ref, signal)),
		staleTime: 0,
	});
	useEffect(() => {
		if (data != null) navigate(data, { replace: true });
	}, [data]);
	if (isPending || data != null) {
		return (
			<Page title={params.ref}>
				<Skeleton label="Looking for it" />
			</Page>
		);
	}
	return (
		<Page title="Not found">
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			<EmptyState title={ref === null ? "This is no ref" : `This ${refKindWord(ref.kind)} was not found`}>
				<p>
					<code>
						<SafeText text={params.ref} />
					</code>{" "}
					{ref === null ? "does not name anything." : "is not known to this server. It may have been deleted."}
				</p>
			</EmptyState>
			{ref !== null && hasChain(ref) && <WhyChain of={params.ref} />}
		</Page>
	);
}
