/** What this server is: its version, its addresses, and where its documents are. */

import { useQuery } from "@tanstack/react-query";
import { Card, Facts } from "../../components/Card";
import { CommandLine } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { SystemFrame } from "./SystemFrame";
import { statsQuery } from "./stats-query";

export default function AboutScreen() {
	const { data, error, isPending } = useQuery(statsQuery());
	return (
		<SystemFrame page="about">
			{isPending && <Skeleton lines={4} />}
			{error !== null && <ErrorNote error={error} />}
			{data !== undefined && (
				<Card title="Turnkeep">
					<Facts
						facts={[
							["Version", data.version],
							["Web and API", location.origin],
							["Binary protocol", data.tcp_addr],
						]}
					/>
					<p>
						The API is described in <a href="/openapi.json">openapi.json</a>. Everything stays on this machine: there is
						no account and no telemetry.
					</p>
					<p>This checks the installation:</p>
					<CommandLine command="turnkeep doctor" />
				</Card>
			)}
		</SystemFrame>
	);
}
