/** A button that opens a list of actions. */

import { Menu as Base } from "@base-ui/react/menu";
import type { ReactElement } from "react";
import { cx } from "./cx";
import css from "./Menu.module.css";

export interface MenuAction {
	readonly label: string;
	readonly onSelect: () => void;
	/** Why it cannot be chosen now. */
	readonly blocked?: string | null;
	readonly isDanger?: boolean;
}

export interface MenuProps {
	/** The button: `<IconButton label="More" icon="more" />`. */
	readonly trigger: ReactElement;
	readonly actions: readonly MenuAction[];
}

export function Menu({ trigger, actions }: MenuProps) {
	return (
		<Base.Root>
			<Base.Trigger render={trigger} />
			<Base.Portal>
				<Base.Positioner sideOffset={4} align="end" className={css.positioner}>
					<Base.Popup className={css.popup}>
						{actions.map((action) => (
							<Base.Item
								key={action.label}
								className={cx(css.item, action.isDanger && css.danger)}
								disabled={action.blocked != null}
								onClick={action.onSelect}
							>
								{action.label}
								{action.blocked != null && <span className={css.reason}>{action.blocked}</span>}
							</Base.Item>
						))}
					</Base.Popup>
				</Base.Positioner>
			</Base.Portal>
		</Base.Root>
	);
}
