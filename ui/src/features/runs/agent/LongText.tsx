/** A machine's text of any length: its beginning, and more of it on demand. */

import { useState } from "react";
import { Button } from "../../../components/Button";
import { MachineText } from "../../../components/SafeText";
import { formatNumberOf } from "../../../model/quantity";

const FIRST_CHARS = 8_000;
const MORE_TIMES = 8;

export function LongText({ text }: { readonly text: string }) {
	const [shownMax, setShownMax] = useState(FIRST_CHARS);
	const left = text.length - shownMax;
	return (
		<>
			<MachineText text={left > 0 ? text.slice(0, shownMax) : text} />
			{left > 0 && (
				<Button onClick={() => setShownMax(shownMax * MORE_TIMES)}>
					{`Show more: ${formatNumberOf(left, "character")} left`}
				</Button>
			)}
		</>
	);
}
