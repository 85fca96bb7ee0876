/** A group with a heading and a line around it. A table or a line usually does better. */

import { type ReactNode, useId } from "react";
import css from "./Card.module.css";

export interface CardProps {
	readonly title: ReactNode;
	readonly actions?: ReactNode;
	readonly children: ReactNode;
}

export function Card({ title, actions, children }: CardProps) {
	const id = useId();
	return (
		<section className={css.card} aria-labelledby={id}>
			<header className={css.head}>
				<h2 id={id}>{title}</h2>
				{actions !== undefined && <div className={css.actions}>{actions}</div>}
			</header>
			{children}
		</section>
	);
}

/** Names and their values, one a line. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ReactNode])[] }) {
	return (
		<dl className={css.facts}>
			{facts.map(([name, value]) => (
				<div key={name} className={css.fact}>
					<dt>{name}</dt>
					<dd>{value}</dd>
				</div>
			))}
		</dl>
	);
}
