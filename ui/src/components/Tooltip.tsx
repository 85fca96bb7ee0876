/** A short text that floats beside what is hovered or focused. Never the only place where something is said. */

import { Tooltip } from "@base-ui/react/tooltip";
import type { ReactElement } from "react";
import css from "./Tooltip.module.css";

export function WithTooltip({ text, children }: { readonly text: string; readonly children: ReactElement }) {
	return (
		<Tooltip.Root>
			<Tooltip.Trigger render={children} />
			<Tooltip.Portal>
				<Tooltip.Positioner sideOffset={6} className={css.positioner}>
					<Tooltip.Popup className={css.popup}>{text}</Tooltip.Popup>
				</Tooltip.Positioner>
			</Tooltip.Portal>
		</Tooltip.Root>
	);
}
