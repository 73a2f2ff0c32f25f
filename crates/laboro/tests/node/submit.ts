// A client made by another generator from the OpenAPI document: types by openapi-typescript, requests by openapi-fetch.
// Compiled strictly, so it also fails where the document does not say what an answer is. Prints "good".
//
//     HUB=URL TOKEN=TOKEN NODE_EXTRA_CA_CERTS=FILE node submit.js

import createClient from "openapi-fetch";
import type { paths } from "./hub.js";

const client = createClient<paths>({
  baseUrl: process.env["HUB"] ?? "",
  headers: { Authorization: `Bearer ${process.env["TOKEN"]}` },
});

const submitted = await client.POST("/api/v1/jobs", {
  body: { name: "typed", tasks: [{ command: ["true"], count: 3 }] },
});
if (submitted.data === undefined) throw new Error(JSON.stringify(submitted.error));
const job: number = submitted.data.job;

const waited = await client.GET("/api/v1/wait", { params: { query: { jobs: String(job), timeout_ms: 60_000 } } });
if (waited.data?.finished !== true) throw new Error(JSON.stringify(waited));

const seen = await client.GET("/api/v1/jobs/{job}", { params: { path: { job } } });
if (seen.data?.name !== "typed" || seen.data.counts?.done !== 3) throw new Error(JSON.stringify(seen));

const refused = await client.GET("/api/v1/jobs/{job}", { params: { path: { job: 4_000_000 } } });
const reason: string | null | undefined = refused.error?.reason;
if (reason !== "no_such_job") throw new Error(JSON.stringify(refused));
console.log("good");
