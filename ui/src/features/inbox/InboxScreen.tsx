/** Everything that waits for a person, from all runs, oldest first. Each item is answered in place. */

import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { runsQuery } from "../../api/queries";
import { useAttention } from "../../api/waiting";
import { ErrorNote } from "../../components/ErrorNote";
import { listBindings, useKeys } from "../../components/keys";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { type AttentionItem, attentionKey, filterAttention, readAttentionKind } from "../../model/attention";
import { EmptyInbox } from "./EmptyInbox";
import css from "./Inbox.module.css";
import { InboxFilters } from "./InboxFilters";
import { InboxItem } from "./InboxItem";
import { useItemKeys } from "./useItemKeys";

export default function InboxScreen() {
	const { data, error, isPending, refetch } = useAttention();
	const [kindText] = useQueryParam("kind");
	const [run] = useQueryParam("run");
	const [named] = useQueryParam("item");
	const filter = { kind: readAttentionKind(kindText), run };
	const shown = filterAttention(data ?? [], filter);
	return (
		<Page title="Inbox" bar={data !== undefined && data.length > 0 && <InboxFilters items={data} filter={filter} />}>
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && shown.length === 0 && <EmptyInbox isFiltered={data.length > 0} />}
			{shown.length > 0 && <ItemList items={shown} named={named} />}
		</Page>
	);
}

interface ItemListProps {
	readonly items: readonly AttentionItem[];
	/** The item that the URL names. */
	readonly named: string | null;
}

function ItemList({ items, named }: ItemListProps) {
	const list = useRef<HTMLUListElement>(null);
	const { data: runs = [] } = useQuery(runsQuery());
	const titles = new Map(runs.map((run) => [run.id, run.title]));
	useKeys("Inbox", [...listBindings(() => list.current), ...useItemKeys(list)]);
	return (
		<ul ref={list} className={css.list}>
			{items.map((item) => (
				<InboxItem
					key={attentionKey(item)}
					item={item}
					runTitle={titles.get(item.runId)}
					isNamed={item.ref === named}
				/>
			))}
		</ul>
	);
}
