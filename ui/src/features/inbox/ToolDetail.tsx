/** A call as it will run: the command, the change, or all arguments. */

import { JsonView } from "../../components/JsonView";
import { MachineText, SafeText } from "../../components/SafeText";
import { commandOf } from "../../model/approval-rule";
import type { Schema } from "../../model/schema";
import css from "./Inbox.module.css";

export function ToolDetail({ tool }: { readonly tool: Schema<"ToolView"> }) {
	const command = commandOf(tool.args);
	return (
		<>
			{command !== null && <MachineText text={command} escapes="show" />}
			<details open={command === null}>
				<summary className={css.hint}>
					All arguments of <SafeText text={tool.name} />
				</summary>
				<JsonView value={tool.args} label="Arguments" />
			</details>
		</>
	);
}
