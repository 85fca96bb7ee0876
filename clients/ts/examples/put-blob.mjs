// PUT_BLOB: bytes, kept once whatever the number of those who put them.
import { connect } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { hash, wasNew } = await client.putBlob(Buffer.from("the bytes of a blob"));
console.log(`blob ${hash} ${wasNew ? "is new" : "was there"}`);
client.close();
