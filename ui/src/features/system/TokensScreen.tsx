import { keys } from "../../api/keys";
import { RawScreen } from "../../components/RawScreen";

export default function TokensScreen() {
	return <RawScreen title="Tokens" source="/v1/worlds" queryKey={keys.system("tokens")} />;
}
