import type { AgentSummary } from '../../../api/agents';
import { api, body } from '../../../api/client';
import { takeSnapshot } from '../../../api/snapshots';
import type { en } from '../../../i18n/agents.en';

/** Stands for a snapshot among the templates, whose names have no colon. */
export const SNAPSHOT = ':snapshot';
/** Stands for a snapshot by its CID among the agents. */
export const BY_CID = ':cid';

type Text = Pick<typeof en, 'nameMissing' | 'nameLong' | 'cidMissing'>;
export interface NewAgent {
  readonly name: string;
  readonly engine: string;
  /** A template, `SNAPSHOT`, or nothing. */
  readonly begin: string;
  /** The agent of the snapshot, or `BY_CID`. */
  readonly origin: string;
  /** A CID; nothing stands for the present workspace of the origin. */
  readonly snapshot: string;
}

const NAME_LIMIT = 100;

/** Return what is wrong with fields, in the words of `t`. */
export function findProblems({ name, begin, origin, snapshot }: NewAgent, t: Text): { name?: string; snapshot?: string } {
  const length = name.trim().length;
  return {
    ...((length === 0 || length > NAME_LIMIT) && { name: length === 0 ? t.nameMissing : t.nameLong }),
    ...(begin === SNAPSHOT && origin === BY_CID && !snapshot.trim() && { snapshot: t.cidMissing }),
  };
}

/** Return a text as one word of a shell. */
export const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Return the command that does what the form does. */
export function createCommand({ name, engine, begin, origin, snapshot }: NewAgent): string {
  const quoted = shellQuoted(name.trim());
  const cid = begin === SNAPSHOT && snapshot.trim() && `--snapshot ${snapshot.trim()}`;
  const words =
    begin === SNAPSHOT && origin !== BY_CID
      ? ['roost agents fork', origin, quoted, cid]
      : ['roost agents create', quoted, engine && `--engine ${engine}`, begin && begin !== SNAPSHOT && `--template ${begin}`, cid];
  return words.filter(Boolean).join(' ');
}

/** Create an agent and wait until it answers. `origin` is the agent whose snapshot it begins with, if one was chosen. */
export async function createAgent({ name, engine, begin, snapshot }: NewAgent, origin: AgentSummary | undefined) {
  if (begin !== SNAPSHOT) {
    return body(
      api.POST('/v0/agents', { body: { name: name.trim(), ...(engine && { engine }), ...(begin && { templateId: begin }) } }),
    );
  }
  const snapshotCid = snapshot.trim() || (origin && (await takeSnapshot(origin.agentId)).snapshotCid);
  const profile = origin && {
    engine: origin.engine,
    description: origin.description,
    vibe: origin.vibe,
    emoji: origin.emoji,
    model: origin.model,
  };
  return body(api.POST('/v0/agents', { body: { ...(engine && { engine }), ...profile, name: name.trim(), snapshotCid } }));
}
