/** One agent program: where it is, what it can do, and how it is changed. */

import { Facts } from "../../components/Card";
import { Drawer } from "../../components/Drawer";
import { CommandLine } from "../../components/EmptyState";
import { SafeText } from "../../components/SafeText";
import { firstLine } from "../../model/text-safety";
import { ProviderState } from "./ProviderState";
import { FEATURES, type Provider, programToml } from "./provider";
import css from "./System.module.css";

export interface ProviderDrawerProps {
	readonly provider: Provider;
	readonly onClose: () => void;
}

export function ProviderDrawer({ provider, onClose }: ProviderDrawerProps) {
	const part = { name: provider.name, command: provider.path ?? `/path/to/${provider.name}`, protocol: null };
	return (
		<Drawer title={firstLine(provider.name)} onClose={onClose}>
			<div className={css.stack}>
				<Facts
					facts={[
						["State", <ProviderState key="state" provider={provider} />],
						["Version", <SafeText key="version" text={provider.version ?? "it did not say one in time"} />],
						["Path", <SafeText key="path" text={provider.path ?? "nowhere in PATH"} />],
					]}
				/>
				<section aria-label="What it can do">
					<h3>What it can do</h3>
					<ul className={css.list}>
						{FEATURES.map(([name, word]) => (
							<li key={name} className={provider.features[name] ? undefined : css.soft}>
								{provider.features[name] ? word : `not: ${word}`}
							</li>
						))}
					</ul>
				</section>
				<section aria-label="Change it">
					<h3>Change its command or arguments</h3>
					<p>The server reads this from its configuration file when it starts:</p>
					{provider.provider === "custom" ? (
						<p className={css.soft}>{`It is the table [providers.${firstLine(provider.name)}] of that file.`}</p>
					) : (
						<CommandLine command={programToml(part)} />
					)}
				</section>
			</div>
		</Drawer>
	);
}
