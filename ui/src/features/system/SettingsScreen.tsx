/** What a person sets for this browser, the rules that answer approvals, and the settings of the server. */

import { setPreferences, THEMES, type Theme, usePreferences } from "../../api/preferences";
import { Card } from "../../components/Card";
import { Checkbox, SelectField } from "../../components/Field";
import { ApprovalRules } from "./ApprovalRules";
import { ServerSettingsCard } from "./ServerSettingsCard";
import { SystemFrame } from "./SystemFrame";

const THEME_WORDS: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

export default function SettingsScreen() {
	const { theme, letters } = usePreferences();
	return (
		<SystemFrame page="settings">
			<Card title="This browser">
				<SelectField
					label="Theme"
					value={theme}
					options={THEMES.map((value) => ({ value, label: THEME_WORDS[value] }))}
					onChange={(chosen) => setPreferences({ theme: chosen })}
				/>
				<Checkbox
					label="Single letters are keys (? lists them)"
					isOn={letters}
					onChange={(isOn) => setPreferences({ letters: isOn })}
				/>
			</Card>
			<ApprovalRules />
			<ServerSettingsCard />
		</SystemFrame>
	);
}
