import { paths } from "../../app/paths";
import { Page } from "../../components/Page";
import { NewRunForm } from "./list/NewRunForm";

/** Starts a run: where, what, who. */
export default function NewRunScreen() {
	return (
		<Page title="Start a run" crumbs={[{ label: "Runs", href: paths.runs() }]}>
			<NewRunForm />
		</Page>
	);
}
