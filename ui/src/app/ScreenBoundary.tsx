/** Keeps a fault of one screen from taking the window along. Going elsewhere, or trying again, clears it. */

import { Component, type ReactNode } from "react";
import { ErrorNote } from "../components/ErrorNote";
import { Page } from "../components/Page";

interface Props {
	/** Another key is another screen. */
	readonly resetKey: string;
	readonly children: ReactNode;
}

interface State {
	readonly error: unknown;
	readonly resetKey: string;
}

export class ScreenBoundary extends Component<Props, State> {
	override state: State = { error: null, resetKey: this.props.resetKey };

	static getDerivedStateFromError(error: unknown): Partial<State> {
		return { error };
	}

	static getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
		return props.resetKey === state.resetKey ? null : { error: null, resetKey: props.resetKey };
	}

	override render(): ReactNode {
		const { error } = this.state;
		if (error === null) return this.props.children;
		return (
			<Page title="This screen failed">
				<ErrorNote
					error={error}
					context="The screen cannot be shown. Agents and the server are not affected."
					onRetry={() => this.setState({ error: null })}
				/>
			</Page>
		);
	}
}
