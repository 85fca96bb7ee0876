/** The frame of every system page: the same tabs over each. */

import type { ReactNode } from "react";
import { paths, SYSTEM_PAGES, type SystemPage } from "../../app/paths";
import { Page } from "../../components/Page";
import { LinkTabs } from "../../components/Tabs";

const CRUMBS = [{ label: "System", href: paths.system() }];

export interface SystemFrameProps {
	readonly page: SystemPage;
	readonly actions?: ReactNode;
	readonly children: ReactNode;
}

export function SystemFrame({ page, actions, children }: SystemFrameProps) {
	const tabs = SYSTEM_PAGES.map((each) => ({ id: each, label: titleOf(each), href: paths.system(each) }));
	return (
		<Page
			title={titleOf(page)}
			crumbs={CRUMBS}
			bar={<LinkTabs label="System" tabs={tabs} current={page} />}
			actions={actions}
		>
			{children}
		</Page>
	);
}

function titleOf(page: SystemPage): string {
	return page.charAt(0).toUpperCase() + page.slice(1);
}
