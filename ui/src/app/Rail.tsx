/** The six places. Under 640 px it is a bar at the bottom. Counts stand only where something waits. */

import { Link } from "wouter";
import { useWaitingCount } from "../api/waiting";
import { cx } from "../components/cx";
import { Icon } from "../components/Icon";
import { PLACES, type PlaceId } from "./places";
import css from "./Rail.module.css";

export function Rail({ current }: { readonly current: PlaceId | null }) {
	const waiting = useWaitingCount();
	return (
		<nav aria-label="Places" className={css.rail}>
			<p className={css.brand}>Turnkeep</p>
			<ul className={css.places}>
				{PLACES.map((place) => (
					<li key={place.id}>
						<Link
							href={place.path}
							className={cx(css.place, place.id === current && css.current)}
							aria-current={place.id === current ? "page" : undefined}
						>
							<Icon name={place.id} />
							<span>{place.label}</span>
							{place.id === "inbox" && waiting > 0 && (
								<span className={css.count}>
									{waiting}
									<span className="visually-hidden"> waiting</span>
								</span>
							)}
						</Link>
					</li>
				))}
			</ul>
		</nav>
	);
}
