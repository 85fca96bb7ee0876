import { keys } from "../../api/keys";
import { RawScreen } from "../../components/RawScreen";

export default function AuditScreen() {
	return <RawScreen title="Audit" source="/v1/worlds" queryKey={keys.system("audit")} />;
}
