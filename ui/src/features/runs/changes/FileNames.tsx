/** Names of files, one a line; many of them are cut until they are asked for. */

import { useState } from "react";
import { Button } from "../../../components/Button";
import { SafeText } from "../../../components/SafeText";
import css from "./Changes.module.css";

const SHOWN_MAX = 30;

export function FileNames({ paths }: { readonly paths: readonly string[] }) {
	const [isWhole, setWhole] = useState(false);
	const shown = isWhole ? paths : paths.slice(0, SHOWN_MAX);
	return (
		<>
			<ul className={css.names}>
				{shown.map((path) => (
					<li key={path}>
						<SafeText text={path} />
					</li>
				))}
			</ul>
			{shown.length < paths.length && (
				<Button look="quiet" onClick={() => setWhole(true)}>{`Show all ${paths.length} files`}</Button>
			)}
		</>
	);
}
