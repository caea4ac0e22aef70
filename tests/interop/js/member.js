// A member of a classic group with kafkajs, which reads until it is told to close.
//
// Arguments: JSON with bootstrap, group, topics, clientId, sessionMs, heartbeatMs. Events and
// commands are those of the other programs, as far as kafkajs has them: it says what it has when it
// has joined, and that it is to join again, but gives nothing up before that.
'use strict';

const readline = require('readline');
const { Kafka, logLevel } = require('kafkajs');

const given = JSON.parse(process.argv[2]);

function emit(event, fields) {
  console.log(JSON.stringify({ event, at_ms: Date.now(), ...fields }));
}

const kafka = new Kafka({
  brokers: given.bootstrap.split(','),
  clientId: given.clientId,
  logLevel: logLevel.WARN,
  // Its own log is JSON too, and would look like events.
  logCreator: () => ({ log }) => console.error(`kafkajs: ${log.message} ${log.error || ''}`),
});
const consumer = kafka.consumer({
  groupId: given.group,
  sessionTimeout: given.sessionMs,
  heartbeatInterval: given.heartbeatMs,
});
let held = [];

function giveUp(event) {
  if (held.length > 0) {
    emit(event, { partitions: held });
  }
  held = [];
}

function spansOf(topic, partition, messages) {
  const runs = [];
  for (const { offset } of messages) {
    const at = Number(offset);
    const last = runs[runs.length - 1];
    if (last !== undefined && last[1] + 1 === at) {
      last[1] = at;
    } else {
      runs.push([at, at]);
    }
  }
  return { [`${topic}-${partition}`]: runs };
}

async function read({ batch, resolveOffset, heartbeat, isStale }) {
  if (isStale() || batch.messages.length === 0) {
    return;
  }
  const { topic, partition, messages } = batch;
  emit('records', { count: messages.length, spans: spansOf(topic, partition, messages) });
  resolveOffset(batch.lastOffset());
  const next = (BigInt(batch.lastOffset()) + 1n).toString();
  try {
    await consumer.commitOffsets([{ topic, partition, offset: next }]);
    emit('committed', {});
  } catch (error) {
    emit('commit-failed', { error: error.type || error.name, message: error.message });
    throw error;
  }
  await heartbeat();
}

async function close() {
  await consumer.disconnect();
  giveUp('revoked');
  emit('closed', {});
  process.exit(0);
}

async function main() {
  const { GROUP_JOIN, REBALANCING, CRASH } = consumer.events;
  consumer.on(REBALANCING, () => giveUp('revoked'));
  consumer.on(GROUP_JOIN, ({ payload }) => {
    giveUp('revoked');
    held = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => `${topic}-${partition}`));
    emit('assigned', { partitions: held });
  });
  consumer.on(CRASH, ({ payload }) => {
    giveUp('lost');
    emit(payload.restart ? 'complained' : 'failed', { message: payload.error.message });
  });
  await consumer.connect();
  await consumer.subscribe({ topics: given.topics.split(','), fromBeginning: true });
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => line.trim() === 'close' && close());
  lines.on('close', close);
  emit('started', {});
  await consumer.run({ autoCommit: false, eachBatch: read });
}

main().catch((error) => {
  emit('failed', { error: error.name, message: error.message });
  process.exit(1);
});
