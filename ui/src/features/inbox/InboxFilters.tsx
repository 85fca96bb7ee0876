/** The filters of the inbox. They are in the URL, so that a link shows the same items. */

import { Button } from "../../components/Button";
import { FilterChip } from "../../components/Chip";
import { useQueryParam } from "../../components/useQueryParam";
import {
	ATTENTION_KINDS,
	type AttentionFilter,
	type AttentionItem,
	attentionKindWord,
	countByKind,
} from "../../model/attention";

interface InboxFiltersProps {
	readonly items: readonly AttentionItem[];
	readonly filter: AttentionFilter;
}

export function InboxFilters({ items, filter }: InboxFiltersProps) {
	const [, setKind] = useQueryParam("kind");
	const [, setRun] = useQueryParam("run");
	const counts = countByKind(items);
	// A kind without items stays while it is chosen, so that it can be switched off.
	const kinds = ATTENTION_KINDS.filter((kind) => counts.has(kind) || kind === filter.kind);
	return (
		<>
			{kinds.map((kind) => (
				<FilterChip
					key={kind}
					isOn={kind === filter.kind}
					count={counts.get(kind) ?? 0}
					onToggle={() => setKind(kind === filter.kind ? null : kind)}
				>
					{attentionKindWord(kind)}
				</FilterChip>
			))}
			{filter.run !== null && <Button onClick={() => setRun(null)}>Show all runs</Button>}
		</>
	);
}
