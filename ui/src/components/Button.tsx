/**
 * Buttons. The label is a verb that says what happens.
 *
 * `blocked` is the reason why it cannot be pressed. A blocked button stays focusable, so that the reason can be read;
 * `disabled` would hide it from the keyboard.
 */

import type { ButtonHTMLAttributes, ReactNode } from "react";
import css from "./Button.module.css";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import { WithTooltip } from "./Tooltip";
import { toast } from "./toasts";

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "disabled" | "title"> {
	readonly look?: "plain" | "primary" | "danger" | "quiet";
	readonly icon?: IconName;
	/** Why it cannot be pressed now. */
	readonly blocked?: string | null;
	/** Whether its request is under way; says so, and takes no second press. */
	readonly isPending?: boolean;
	readonly children: ReactNode;
}

export function Button({
	look = "plain",
	icon,
	blocked = null,
	isPending = false,
	children,
	className,
	onClick,
	type = "button",
	...rest
}: ButtonProps) {
	const isOff = blocked !== null || isPending;
	const button = (
		<button
			{...rest}
			type={type}
			className={cx(css.button, css[look], className)}
			aria-disabled={isOff || undefined}
			aria-busy={isPending || undefined}
			aria-description={blocked ?? undefined}
			onClick={(event) => {
				if (!isOff) return onClick?.(event);
				event.preventDefault();
				// A finger cannot rest on a button, so pressing says the reason too.
				if (blocked !== null) toast(blocked);
			}}
		>
			{icon !== undefined && <Icon name={icon} />}
			<span>{children}</span>
			{isPending && <span className={css.pending}>…</span>}
		</button>
	);
	return blocked === null ? button : <WithTooltip text={blocked}>{button}</WithTooltip>;
}

export interface IconButtonProps extends Omit<ButtonProps, "children" | "icon" | "look"> {
	/** Its name, for assistive technology and the tooltip. */
	readonly label: string;
	readonly icon: IconName;
}

/** A button of only an icon. It always has a name. */
export function IconButton({
	label,
	icon,
	blocked = null,
	className,
	onClick,
	isPending: _,
	...rest
}: IconButtonProps) {
	return (
		<WithTooltip text={blocked ?? label}>
			<button
				type="button"
				{...rest}
				aria-label={label}
				aria-disabled={blocked !== null || undefined}
				className={cx(css.icon, className)}
				aria-description={blocked ?? undefined}
				onClick={(event) => {
					if (blocked === null) onClick?.(event);
					else toast(blocked);
				}}
			>
				<Icon name={icon} />
			</button>
		</WithTooltip>
	);
}
