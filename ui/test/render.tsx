/** Renders with the providers of the window, and answers its requests. */

import { Tooltip } from "@base-ui/react/tooltip";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type RenderResult, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";

export function renderInWindow(children: ReactNode): RenderResult {
	const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
	return render(
		<QueryClientProvider client={client}>
			<Tooltip.Provider delay={0}>{children}</Tooltip.Provider>
		</QueryClientProvider>,
	);
}

export type Answers = Readonly<Record<string, unknown>>;

/** Answers requests by "METHOD path"; others get 404. A `Response` is used as it is, everything else is JSON. */
export function answerRequests(answers: Answers): { readonly requests: Request[] } {
	const requests: Request[] = [];
	vi.stubGlobal("fetch", async (input: Request | string | URL, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.origin), init);
		requests.push(request.clone());
		const { pathname, search } = new URL(request.url);
		const answer = answers[`${request.method} ${pathname}${search}`] ?? answers[`${request.method} ${pathname}`];
		if (answer instanceof Response) return answer.clone();
		if (answer !== undefined) return Response.json(answer);
		return Response.json({ error: { code: "NotFound", message: `${pathname} does not exist` } }, { status: 404 });
	});
	return { requests };
}
