import { keys } from "../../api/keys";
import { RawScreen } from "../../components/RawScreen";

export default function TypesScreen() {
	return <RawScreen title="Types" source="/v1/registry/types" queryKey={keys.system("types")} />;
}
