// GET_BLOB: a blob's bytes, checked against their hash.
import { connect } from "@turnkeep/client/node";

const options = { token: process.env.TURNKEEP_TOKEN, verifyReads: true };
const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", options);
const { hash } = await client.putBlob(Buffer.from("the bytes of a blob"));
console.log(Buffer.from(await client.blob(hash)).toString());
client.close();
