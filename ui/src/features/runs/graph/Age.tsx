/** How long something has lasted: until now, or in a replay until the moment that is shown. */

import { Time } from "../../../components/Time";
import { formatAge, formatExact, parseTime } from "../../../model/time";
import { useRunSource } from "./run-source";

export function Age({ since }: { readonly since: string }) {
	const moment = useRunSource().time();
	const begun = parseTime(since);
	if (moment === null || begun === null) return <Time at={since} format="age" />;
	return (
		<time dateTime={since} title={formatExact(begun)}>
			{formatAge(begun, moment)}
		</time>
	);
}
