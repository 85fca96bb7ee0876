/**
 * `/go/REF`: finds where a ref is shown and goes there. What has no page any more is explained by its chain; if there is
 * none either, the page says what the ref was.
 */

import { skipToken, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { navigate } from "wouter/use-browser-location";
import { isNotFound } from "../api/errors";
import { EmptyState } from "../components/EmptyState";
import { ErrorNote } from "../components/ErrorNote";
import { Page } from "../components/Page";
import { WhyChain } from "../components/refs/WhyPanel";
import { whyQuery } from "../components/refs/why-query";
import { SafeText } from "../components/SafeText";
import { Skeleton } from "../components/Skeleton";
import type { ScreenProps } from "../components/screen";
import { formatRef, hasChain, parseRef, type Ref, refKindWord, shortRefName } from "../model/refs";
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
	if (isPending || data != null) return <Looking name={params.ref} />;
	if (error !== null) {
		return (
			<Page title={params.ref}>
				<ErrorNote error={error} onRetry={() => void refetch()} />
			</Page>
		);
	}
	return ref === null ? <NoRef text={params.ref} /> : <NoPage to={ref} />;
}

function Looking({ name }: { readonly name: string }) {
	return (
		<Page title={name}>
			<Skeleton label="Looking for it" />
		</Page>
	);
}

function NoRef({ text }: { readonly text: string }) {
	return (
		<Page title="Not found">
			<EmptyState title="This is no ref">
				<p>
					<code>
						<SafeText text={text} />
					</code>{" "}
					does not name anything.
				</p>
			</EmptyState>
		</Page>
	);
}

/** A thing that no page shows. The records may still know why it was there. */
function NoPage({ to }: { readonly to: Ref }) {
	const why = whyQuery(formatRef(to));
	const { data, error, isLoading } = useQuery(hasChain(to) ? why : { queryKey: why.queryKey, queryFn: skipToken });
	const kind = refKindWord(to.kind);
	const name = <SafeText text={formatRef(to)} />;
	if (isLoading) return <Looking name={formatRef(to)} />;
	if (data !== undefined) {
		return (
			<Page title={`The ${kind} ${shortRefName(to)}`}>
				<p>
					No page shows <code>{name}</code> any more, because what it belonged to was deleted. Its record says how it
					came about:
				</p>
				<WhyChain of={formatRef(to)} />
			</Page>
		);
	}
	return (
		<Page title="Not found">
			<EmptyState title={`This ${kind} was not found`}>
				<p>
					<code>{name}</code> is not known to this server. It may have been deleted.
				</p>
			</EmptyState>
			{error !== null && !isNotFound(error) && <ErrorNote error={error} />}
		</Page>
	);
}
