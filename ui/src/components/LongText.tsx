/** A machine's text of any length: its beginning, and more of it on demand. */

import { useState } from "react";
import { formatNumberOf } from "../model/quantity";
import { Button } from "./Button";
import { MachineText } from "./SafeText";

const FIRST_CHARS = 16_000;
const MORE_TIMES = 8;

export function LongText({ text }: { readonly text: string }) {
	const [shownMax, setShownMax] = useState(FIRST_CHARS);
	const left = text.length - shownMax;
	return (
		<>
			<MachineText text={left > 0 ? text.slice(0, shownMax) : text} escapes="show" />
			{left > 0 && (
				<Button onClick={() => setShownMax(shownMax * MORE_TIMES)}>
					{`Show more: ${formatNumberOf(left, "character")} left`}
				</Button>
			)}
		</>
	);
}
