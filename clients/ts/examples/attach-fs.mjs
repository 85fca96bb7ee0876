// ATTACH_FS: the files that belong to a turn. A tree is a msgpack array of entries, sorted by name.
import { connect, encodeTagged } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const content = Buffer.from("# Notes\n");
const { hash } = await client.putBlob(content);
const entry = { 1: "notes.md", 2: 0, 3: 0o644, 4: content.length, 5: Buffer.from(hash, "hex") };
const root = await client.putBlob(Buffer.concat([Buffer.of(0x91), encodeTagged(entry)]));
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
const { turnId } = await client.append({ contextId, type, payload: encodeTagged({ 1: "see the notes" }) });
await client.attachFs(turnId, root.hash);
console.log(`turn ${turnId} has the filesystem ${root.hash}`);
client.close();
