/** The frame of every system page: the same tabs over each. */

import type { ReactNode } from "react";
import { paths, SYSTEM_PAGES, type SystemPage } from "../../app/paths";
import { Page } from "../../components/Page";
import { LinkTabs } from "../../components/Tabs";

const SYSTEM_CRUMB = { label: "System", href: paths.system() };

export interface SystemFrameProps {
	readonly page: SystemPage;
	/** The name of the one thing of the page that is shown instead of its list. */
	readonly object?: string;
	readonly aside?: ReactNode;
	readonly actions?: ReactNode;
	/** Whether the content fills the window and scrolls by itself. */
	readonly isFull?: boolean;
	readonly children: ReactNode;
}

export function SystemFrame({ page, object, aside, actions, isFull = false, children }: SystemFrameProps) {
	const tabs = SYSTEM_PAGES.map((each) => ({ id: each, label: titleOf(each), href: paths.system(each) }));
	const pageCrumb = { label: titleOf(page), href: paths.system(page) };
	return (
		<Page
			title={object ?? titleOf(page)}
			crumbs={object === undefined ? [SYSTEM_CRUMB] : [SYSTEM_CRUMB, pageCrumb]}
			bar={<LinkTabs label="System" tabs={tabs} current={page} />}
			aside={aside}
			actions={actions}
			isFull={isFull}
		>
			{children}
		</Page>
	);
}

function titleOf(page: SystemPage): string {
	return page.charAt(0).toUpperCase() + page.slice(1);
}
