/** A path that is no page. */

import { Link } from "wouter";
import { EmptyState } from "../components/EmptyState";
import { Page } from "../components/Page";
import { SafeText } from "../components/SafeText";
import { paths } from "./paths";

export function NotFoundPage({ path }: { readonly path: string }) {
	return (
		<Page title="Not found">
			<EmptyState title="There is no such page" action={<Link href={paths.inbox()}>Go to the inbox</Link>}>
				<p>
					Nothing is at <code>{<SafeText text={path} />}</code>. A pasted ref opens from search (Ctrl K).
				</p>
			</EmptyState>
		</Page>
	);
}
