#!/usr/bin/env node
// A browser whose user grants everything: goes where it is sent, and on from there.
const answer = await fetch(process.argv[2], { redirect: "follow" });
await answer.text();
