/** The agent programs of the server's machine: found, logged in, and what each can do. */

import { useQuery } from "@tanstack/react-query";
import { providersQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { NewProvider } from "./NewProvider";
import { ProviderDrawer } from "./ProviderDrawer";
import { ProviderState } from "./ProviderState";
import { featureWords, type Provider } from "./provider";
import css from "./System.module.css";
import { SystemFrame } from "./SystemFrame";

export default function ProvidersScreen() {
	const { data, error, isPending, isFetching, refetch } = useQuery(providersQuery());
	const [name, setName] = useQueryParam("name");
	const [isNew, setNew] = useQueryParam("new");
	const open = data?.find((each) => each.name === name);
	const actions = (
		<>
			<Button isPending={isFetching} onClick={() => void refetch()}>
				Check again
			</Button>
			<Button icon="plus" onClick={() => setNew("1")}>
				Add a program
			</Button>
		</>
	);
	return (
		<SystemFrame page="providers" actions={actions}>
			{isPending && (
				<>
					<p className={css.soft}>Each program is asked for its version and its login. This takes some seconds.</p>
					<Skeleton lines={4} />
				</>
			)}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && <Advice providers={data} />}
			{data !== undefined && (
				<DataTable
					label="Agent programs"
					columns={COLUMNS}
					rows={data}
					rowKey={(each) => each.name}
					rowHref={(each) => paths.system("providers", { name: each.name })}
				/>
			)}
			{open !== undefined && <ProviderDrawer key={open.name} provider={open} onClose={() => setName(null)} />}
			{isNew === "1" && <NewProvider onClose={() => setNew(null)} />}
		</SystemFrame>
	);
}

function Advice({ providers }: { readonly providers: readonly Provider[] }) {
	const usable = providers.find(({ found, loggedIn }) => found && loggedIn !== false);
	return (
		<p className={css.soft}>
			{usable === undefined
				? "No program can be used yet: install one and log in with it, then check again. Agents cannot work until then."
				: "Agents run on these programs of the server’s machine. Each uses its own login."}
		</p>
	);
}

const COLUMNS: readonly Column<Provider>[] = [
	{ id: "name", header: "Program", minWidth: 100, cell: (each) => <SafeText text={each.name} /> },
	{ id: "state", header: "State", minWidth: 220, grow: 1, cell: (each) => <ProviderState provider={each} /> },
	{ id: "version", header: "Version", minWidth: 140, drop: 2, cell: (each) => <SafeText text={each.version ?? "—"} /> },
	{
		id: "features",
		header: "Can",
		minWidth: 260,
		drop: 1,
		cell: (each) => <span className={css.soft}>{featureWords(each.features)}</span>,
	},
];
