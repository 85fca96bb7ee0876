/** Fork the head, or compare with a history that shares the past. */

import { useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Menu } from "../../components/Menu";
import { labelWords } from "../../model/history";
import { firstLine } from "../../model/text-safety";
import { ForkDialog } from "./ForkDialog";
import type { Lineage, Related } from "./lineage";

export interface HistoryActionsProps {
	readonly lineage: Lineage;
	readonly related: Related | undefined;
}

export function HistoryActions({ lineage, related }: HistoryActionsProps) {
	const [isForking, setForking] = useState(false);
	const block = useActionBlock();
	const { context_id, head_turn_id } = lineage.context;
	const others = related?.branches ?? [];
	const compare = (other: string) => navigate(paths.compare(context_id, other));
	return (
		<>
			{others.length === 0 ? (
				<Button blocked="No other history shares its turns">Compare with…</Button>
			) : (
				<Menu
					trigger={<Button>Compare with…</Button>}
					actions={others.map((each) => ({
						label: `History ${each.context} ${firstLine(labelWords(each.labels).join(", "), 40)}`,
						onSelect: () => compare(each.context),
					}))}
				/>
			)}
			<Button
				icon="fork"
				data-tour="fork"
				blocked={block ?? (head_turn_id === "0" ? "It has no turn to start from" : null)}
				onClick={() => setForking(true)}
			>
				Fork from the head
			</Button>
			{isForking && <ForkDialog turn={head_turn_id} onClose={() => setForking(false)} />}
		</>
	);
}
