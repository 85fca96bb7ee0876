import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { cx } from "../../components/cx";
import { Page } from "../../components/Page";
import type { ScreenProps } from "../../components/screen";
import { NARROW, useMedia } from "../../components/useMedia";
import { eyesKey } from "../../model/ledger";
import { EyesBar } from "./EyesBar";
import { EyesMenu } from "./EyesMenu";
import { LedgerFault } from "./LedgerFault";
import css from "./Ledgers.module.css";
import { LedgerTabs } from "./LedgerTabs";
import { ledgerQuery, streamQuery } from "./ledger-queries";
import { PocketPanel } from "./PocketPanel";
import { SettingsDialog } from "./SettingsDialog";
import { StreamList } from "./StreamList";
import { useEyes } from "./useEyes";
import { usePeople } from "./usePeople";
import { WriteBox } from "./WriteBox";

/** A ledger's stream, its pocket, and the box in which one writes. */
export default function LedgerScreen({ params: { world } }: ScreenProps<"world">) {
	const { data: ledger, error, refetch } = useQuery(ledgerQuery(world));
	const [eyes, setEyes] = useEyes();
	const { data: stream } = useQuery(streamQuery(world, eyes));
	const [isChanging, setChanging] = useState(false);
	const isNarrow = useMedia(NARROW);
	const people = usePeople(world, ledger);
	const pocket = ledger !== undefined && eyes.kind !== "audit" && (
		<PocketPanel world={world} ledger={ledger} pocket={stream?.pocket ?? null} eyes={eyes} />
	);
	return (
		<Page
			title={world}
			crumbs={[{ label: "Ledgers", href: paths.ledgers() }]}
			actions={
				<>
					<EyesMenu eyes={eyes} ledger={ledger} people={people} onChange={setEyes} />
					{ledger !== undefined && <Button onClick={() => setChanging(true)}>Settings…</Button>}
				</>
			}
			bar={<LedgerTabs world={world} current="stream" ledger={ledger} eyes={eyes} />}
			isFull
		>
			{error !== null && ledger === undefined && (
				<LedgerFault world={world} error={error} onRetry={() => void refetch()} />
			)}
			{(error === null || ledger !== undefined) && (
				<div className={cx(css.screen, pocket === false && css.alone)}>
					<div className={css.main}>
						<EyesBar eyes={eyes} ledger={ledger} back={paths.ledger(world)} />
						{isNarrow && pocket !== false && (
							<details className={css.pocketSheet}>
								<summary>Clock, calendar and messages</summary>
								{pocket}
							</details>
						)}
						<StreamList key={`stream ${eyesKey(eyes)}`} world={world} ledger={ledger} eyes={eyes} />
						{ledger !== undefined && eyes.kind !== "audit" && (
							<WriteBox key={`box ${eyesKey(eyes)}`} world={world} ledger={ledger} eyes={eyes} people={people} />
						)}
					</div>
					{!isNarrow && pocket !== false && (
						<aside aria-label="Pocket" className={css.side}>
							{pocket}
						</aside>
					)}
				</div>
			)}
			{isChanging && ledger !== undefined && (
				<SettingsDialog world={world} ledger={ledger} onClose={() => setChanging(false)} />
			)}
		</Page>
	);
}
