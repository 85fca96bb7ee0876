/** An agent in a list of waits. It has no state of its own there: what it waits for stands beside it. */

import { paths } from "../../../app/paths";
import { RefChip } from "../../../components/refs/RefChip";
import type { Schema } from "../../../model/schema";

export function WaitingAgent({ id, run }: { readonly id: string; readonly run: Schema<"RunView"> }) {
	const name = run.nodes[id]?.label;
	return (
		<RefChip
			to={{ kind: "node", id }}
			href={paths.run(run.id, { agent: id })}
			{...(name === undefined ? {} : { name })}
		/>
	);
}
